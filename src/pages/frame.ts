/** The frame of the pages that the program writes itself: no script, nothing to load. */
import { escapeHtml } from "#lib/html.ts";
import { directionOf, LANGUAGE_NAMES, LANGUAGES, type Language } from "#lib/languages.ts";
import type { PageWords } from "./words.ts";

const STYLE =
  "body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}" +
  "a{color:#0b5d9e}section{border-top:1px solid #ccc}dl{display:grid;grid-template-columns:auto 1fr;gap:.2rem 1rem}dd{margin:0}" +
  "nav{display:flex;flex-wrap:wrap;gap:.4rem 1rem}[aria-current]{font-weight:bold}" +
  "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}a{color:#8cc4f2}}";

interface Page {
  readonly title: string;
  readonly style: string;
  /** HTML. */
  readonly body: string;
  /** The same page in another language. */
  readonly address: (language: Language) => string;
}

export function framedPage({ language, t }: PageWords, { title, style, body, address }: Page): string {
  const languages = LANGUAGES.map((one) =>
    one === language
      ? `<span aria-current="true">${LANGUAGE_NAMES[one]}</span>`
      : `<a href="${escapeHtml(address(one))}" lang="${one}" hreflang="${one}">${LANGUAGE_NAMES[one]}</a>`,
  );
  return (
    `<!doctype html><html lang="${language}" dir="${directionOf(language)}"><head><meta charset="utf-8">` +
    `<meta name="viewport" content="width=device-width"><title>${escapeHtml(title)}</title><style>${STYLE}${style}</style></head>` +
    `<body><h1>${escapeHtml(title)}</h1>${body}` +
    `<section><nav aria-label="${t("page.language")}">${languages.join("")}</nav></section></body></html>\n`
  );
}
