/** Words of `client-fingerprint`. */

/** Browsers whose ClientHello can be shown, and the drawn ones. */
export const SHOWN_BROWSERS: readonly string[] = [
  "chrome",
  "chrome133",
  "chrome120",
  "firefox",
  "firefox148",
  "firefox120",
  "safari",
  "safari26",
  "safari16",
  "ios",
  "ios14",
  "qq",
  "edge",
  "360",
  "random",
  "randomized",
  "randomizednoalpn",
];

/** Their hello ends at TLS 1.2: the nearest that the runtime's TLS library can do stands for them. */
const BROWSERS_OF_TLS12: readonly string[] = ["android"];
const NO_BROWSER: readonly string[] = ["", "none"];

export type BrowserKind = "shown" | "of TLS 1.2" | "none" | "unknown";

/** What such a word asks for; small and capital letters are the same. */
export function kindOfBrowser(name: string): BrowserKind {
  const word = name.toLowerCase();
  if (NO_BROWSER.includes(word)) return "none";
  if (BROWSERS_OF_TLS12.includes(word)) return "of TLS 1.2";
  return SHOWN_BROWSERS.includes(word) ? "shown" : "unknown";
}
