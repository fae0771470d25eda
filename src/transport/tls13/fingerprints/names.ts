/** Names of `client-fingerprint` and what stands for them. */
import { randomInt } from "node:crypto";
import { CHROME_120, CHROME_133, QQ_11 } from "./chrome.ts";
import { FIREFOX_120, FIREFOX_148 } from "./firefox.ts";
import { randomizedTemplate } from "./randomized.ts";
import { IOS_14, SAFARI_16, SAFARI_26 } from "./safari.ts";
import type { HelloTemplate } from "./template.ts";

/** Templates of one program: what `random` and `randomized` are is drawn once, as a browser does not change either. */
export class Fingerprints {
  #random: HelloTemplate | null = null;
  readonly #randomized = new Map<boolean, HelloTemplate>();

  /**
   * Null: a word that `kindOfBrowser` says cannot be shown.
   * `hybrid` false: the browser before it offered X25519MLKEM768.
   */
  template(name: string, hybrid = true): HelloTemplate | null {
    const word = name.toLowerCase();
    const newest = this.#newest(word);
    return newest === null || hybrid ? newest : (BEFORE_HYBRID.get(newest) ?? newest);
  }

  #newest(word: string): HelloTemplate | null {
    if (word === "random") return (this.#random ??= drawBrowser());
    if (word === "randomized") return this.#draw(true);
    if (word === "randomizednoalpn") return this.#draw(false);
    return TEMPLATES.get(word) ?? null;
  }

  #draw(withAlpn: boolean): HelloTemplate {
    const known = this.#randomized.get(withAlpn);
    if (known !== undefined) return known;
    const made = randomizedTemplate(withAlpn);
    this.#randomized.set(withAlpn, made);
    return made;
  }
}

const TEMPLATES = new Map<string, HelloTemplate>([
  ["chrome", CHROME_133],
  ["chrome133", CHROME_133],
  ["chrome120", CHROME_120],
  ["firefox", FIREFOX_148],
  ["firefox148", FIREFOX_148],
  ["firefox120", FIREFOX_120],
  ["safari", SAFARI_26],
  ["safari26", SAFARI_26],
  ["safari16", SAFARI_16],
  ["ios", IOS_14],
  ["ios14", IOS_14],
  ["qq", QQ_11],
  ["edge", CHROME_133], // the browser has Chrome's
  ["360", QQ_11],
]);

/** A word that stands for this hello in whatever thread; null: it was drawn here. */
export function wordOf(template: HelloTemplate): string | null {
  for (const [word, one] of TEMPLATES) if (one === template) return word;
  return null;
}

const BEFORE_HYBRID = new Map<HelloTemplate, HelloTemplate>([
  [CHROME_133, CHROME_120],
  [FIREFOX_148, FIREFOX_120],
  [SAFARI_26, SAFARI_16],
]);

/** As often as such browsers are met. */
const WEIGHTS: readonly (readonly [HelloTemplate, number])[] = [
  [CHROME_133, 6],
  [SAFARI_26, 3],
  [IOS_14, 2],
  [FIREFOX_148, 1],
];

function drawBrowser(): HelloTemplate {
  const all = WEIGHTS.flatMap(([template, weight]) => Array<HelloTemplate>(weight).fill(template));
  return all[randomInt(all.length)] ?? CHROME_133;
}
