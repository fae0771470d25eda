/** A user's subscription for people: what is left, a button for each client, and the codes that a phone scans. No script, nothing to load. */
import encodeQr from "qr";
import type { SubscriptionView } from "#core/users.ts";
import { escapeHtml } from "#lib/html.ts";
import type { Language } from "#lib/languages.ts";
import { framedPage } from "#pages/frame.ts";
import { pageWords, type PageWords } from "#pages/words.ts";
import { linksOf } from "./subscription-formats.ts";
import { importsOf } from "./subscription-imports.ts";

const STYLE =
  "code{word-break:break-all;direction:ltr;unicode-bidi:isolate}svg{width:15rem;height:15rem;background:#fff}svg path{fill:#000}" +
  ".import{padding:.4rem .8rem;border:1px solid;border-radius:.5rem;text-decoration:none}";

const STATES = {
  active: "subscription.active",
  disabled: "subscription.disabled",
  expired: "subscription.expired",
  limited: "subscription.limited",
} as const;

export function subscriptionPage(view: SubscriptionView, language: Language): string {
  const words = pageWords(language);
  const { title, url } = view;
  const links = linksOf(view);
  const nodes = links.map(({ link }, at) =>
    codeSection(`${words.t("subscription.node")}${links.length === 1 ? "" : ` ${at + 1}`}`, link),
  );
  const rows = rowsOf(view, words)
    .map(([what, value]) => `<dt>${what}</dt><dd>${value}</dd>`)
    .join("");
  const body =
    `<dl>${rows}</dl>${importSection(view, words)}` +
    `${codeSection(words.t("subscription.subscription"), url)}${nodes.join("")}`;
  return framedPage(words, { title, style: STYLE, body, address: (other) => `?format=html&lang=${other}` });
}

function rowsOf(view: SubscriptionView, words: PageWords): readonly (readonly [string, string])[] {
  const { t, bytes, instant } = words;
  const { uploadBytes, downloadBytes, totalBytes, expiresAtMs, status } = view;
  const left = Math.max(0, totalBytes - uploadBytes - downloadBytes);
  const used = { bytes: bytes(uploadBytes + downloadBytes), upload: bytes(uploadBytes) };
  return [
    [t("subscription.state"), t(STATES[status])],
    [t("subscription.used"), t("subscription.usedText", used)],
    ...(totalBytes === 0
      ? []
      : [
          [
            t("subscription.left"),
            t("subscription.leftText", { left: bytes(left), total: bytes(totalBytes) }),
          ] as const,
        ]),
    ...(expiresAtMs === null ? [] : [[t("subscription.until"), instant(expiresAtMs)] as const]),
  ];
}

function importSection({ url, title, mihomo, singBox }: SubscriptionView, { t }: PageWords): string {
  const forms = { mihomo: mihomo !== null, "sing-box": singBox !== null };
  const buttons = importsOf(url, title, forms).map(
    ({ name, address }) => `<a class="import" href="${escapeHtml(address)}">${name}</a>`,
  );
  return (
    `<section><h2>${t("subscription.import")}</h2><p>${t("subscription.importText")}</p>` +
    `<nav aria-label="${t("subscription.import")}">${buttons.join("")}</nav></section>`
  );
}

/** Bytes that the largest code holds. */
const LARGEST_CODE = 2953;

function codeSection(title: string, text: string): string {
  const code = Buffer.byteLength(text) > LARGEST_CODE ? "" : encodeQr(text, "svg", { ecc: "low" });
  return `<section><h2>${title}</h2>${code}<p><code>${escapeHtml(text)}</code></p></section>`;
}
