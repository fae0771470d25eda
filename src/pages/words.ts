/** What the program's own pages say in one language. */
import type { Language } from "#lib/languages.ts";
import { translator, type SameKeys, type Translate } from "#lib/words.ts";
import { en, fa, ru, zh } from "./words/index.ts";

type English = typeof en;

export interface PageWords {
  readonly language: Language;
  readonly t: Translate<English>;
  /** `1.5 GiB` */
  bytes(bytes: number): string;
  /** Date and time of UTC, which it says. */
  instant(unixMs: number): string;
}

const CATALOGUES: Readonly<Record<Language, SameKeys<English>>> = { en, zh, fa, ru };
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function pageWords(language: Language): PageWords {
  return {
    language,
    t: translator<English>(language, CATALOGUES[language]),
    bytes(bytes) {
      const power = bytes < 1024 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
      const digits = power === 0 ? 0 : 1;
      const number = new Intl.NumberFormat(language, {
        minimumFractionDigits: digits,
        maximumFractionDigits: digits,
        useGrouping: false,
      });
      return `${number.format(bytes / 1024 ** power)} ${UNITS[power]}`;
    },
    instant: (unixMs) => instantText(language, unixMs),
  };
}

/** English is read all over the world, which writes days and months in either order: it has the order of ISO 8601. */
function instantText(language: Language, unixMs: number): string {
  const date = new Date(Math.min(unixMs, 8.64e15)); // later than a date can be is as good as never
  if (language === "en") return `${date.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  const format = new Intl.DateTimeFormat(language, {
    dateStyle: "long",
    timeStyle: "short",
    timeZone: "UTC",
  });
  return `${format.format(date)} UTC`;
}
