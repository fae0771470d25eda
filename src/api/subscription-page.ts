/** A user's subscription for people: what is left, and the codes that a phone scans. No script, nothing to load. */
import encodeQr from "qr";
import { bytesText, escapeHtml } from "#lib/html.ts";
import type { SubscriptionView, UserStatus } from "#core/users.ts";

const STYLE =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}" +
  "dl{display:grid;grid-template-columns:auto 1fr;gap:.2rem 1rem}dd{margin:0}section{border-top:1px solid #ccc}" +
  "code{word-break:break-all}svg{width:15rem;height:15rem;background:#fff}svg path{fill:#000}" +
  "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}}";

const STATUS_TEXTS: Readonly<Record<UserStatus, string>> = {
  active: "active",
  disabled: "disabled",
  expired: "expired",
  limited: "quota used up",
};

export function subscriptionPage(view: SubscriptionView): string {
  const { title, url, link } = view;
  const body = rowsOf(view)
    .map(([what, value]) => `<dt>${what}</dt><dd>${value}</dd>`)
    .join("");
  return (
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">` +
    `<title>${escapeHtml(title)}</title><style>${STYLE}</style></head>` +
    `<body><h1>${escapeHtml(title)}</h1><dl>${body}</dl>` +
    `${codeSection("Subscription", url)}${codeSection("Node", link)}</body></html>\n`
  );
}

function rowsOf(view: SubscriptionView): readonly (readonly [string, string])[] {
  const { uploadBytes, downloadBytes, totalBytes, expiresAtMs, status } = view;
  const left = Math.max(0, totalBytes - uploadBytes - downloadBytes);
  return [
    ["State", STATUS_TEXTS[status]],
    ["Used", `${bytesText(uploadBytes + downloadBytes)} (upload ${bytesText(uploadBytes)})`],
    ...(totalBytes === 0 ? [] : [["Left", `${bytesText(left)} of ${bytesText(totalBytes)}`] as const]),
    ...(expiresAtMs === null ? [] : [["Until", `${instantText(expiresAtMs)} UTC`] as const]),
  ];
}

function instantText(atMs: number): string {
  // Later than a date can be is as good as never, and no reason to fail.
  const date = new Date(Math.min(atMs, 8.64e15));
  return date.toISOString().slice(0, 16).replace("T", " ");
}

/** Bytes that the largest code holds. */
const LARGEST_CODE = 2953;

function codeSection(title: string, text: string): string {
  const code = Buffer.byteLength(text) > LARGEST_CODE ? "" : encodeQr(text, "svg", { ecc: "low" });
  return `<section><h2>${title}</h2>${code}<p><code>${escapeHtml(text)}</code></p></section>`;
}
