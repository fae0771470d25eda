/** What a page says in one language: texts, and numbers and times as that language writes them. */
import type { Language } from "#lib/languages.ts";
import { translator, type SameKeys, type Translate } from "#lib/words.ts";
import { en, type English } from "./en/index.ts";

/** A key of a text that needs no parameters. */
export type PlainKey = {
  readonly [Key in keyof English]: English[Key] extends `${string}{${string}` | object ? never : Key;
}[keyof English];

const UNITS = ["unit.B", "unit.KiB", "unit.MiB", "unit.GiB", "unit.TiB", "unit.PiB"] as const;

export class Words {
  readonly language: Language;
  readonly t: Translate<English>;
  readonly #number: Intl.NumberFormat;
  /** By digits behind the point. */
  readonly #digits: readonly Intl.NumberFormat[];
  readonly #moment: Intl.DateTimeFormat;
  readonly #day: Intl.DateTimeFormat;
  readonly #clock: Intl.DateTimeFormat;

  constructor(language: Language, catalogue: SameKeys<English>) {
    this.language = language;
    this.t = translator<English>(language, catalogue);
    this.#number = new Intl.NumberFormat(language);
    this.#digits = [0, 1, 2].map(
      (digits) =>
        new Intl.NumberFormat(language, {
          minimumFractionDigits: digits,
          maximumFractionDigits: digits,
          useGrouping: false,
        }),
    );
    this.#moment = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" });
    this.#day = new Intl.DateTimeFormat(language, { dateStyle: "medium" });
    this.#clock = new Intl.DateTimeFormat(language, { timeStyle: "medium", hourCycle: "h23" });
  }

  count(value: number): string {
    return this.#number.format(value);
  }

  /** `1.5 MiB`; three significant digits at most. */
  bytes(bytes: number): string {
    let value = Math.max(0, bytes);
    let unit = 0;
    while (value >= 1000 && unit < UNITS.length - 1) {
      value /= 1024;
      unit++;
    }
    const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
    return `${this.#digits[digits]?.format(value)} ${this.t(UNITS[unit] ?? "unit.B")}`;
  }

  rate(bytesPerSecond: number): string {
    return this.t("unit.rate", { amount: this.bytes(bytesPerSecond) });
  }

  /** `42 s`, `3 min`, `2 h 5 min`, `4 d 1 h`. */
  duration(ms: number): string {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    if (seconds < 60) return this.t("unit.seconds", { value: seconds });
    const minutes = Math.floor(seconds / 60);
    if (minutes < 60) return this.t("unit.minutes", { value: minutes });
    const hours = Math.floor(minutes / 60);
    if (hours < 24) return pair(this.t("unit.hours", { value: hours }), "unit.minutes", minutes % 60, this.t);
    return pair(this.t("unit.days", { value: Math.floor(hours / 24) }), "unit.hours", hours % 24, this.t);
  }

  /** `never` for the epoch and for the zero time, which mean just that. */
  ago(time: string | undefined, nowMs: number): string {
    const atMs = time === undefined ? Number.NaN : Date.parse(time);
    if (Number.isNaN(atMs) || atMs <= 0) return this.t("unit.never");
    return this.t("unit.ago", { duration: this.duration(nowMs - atMs) });
  }

  /** Date and time, in the zone of the browser. */
  moment(unixMs: number): string {
    return this.#moment.format(unixMs);
  }

  /** The date alone, in the zone of the browser. */
  day(unixMs: number): string {
    return this.#day.format(unixMs);
  }

  /** Hours, minutes and seconds, in the zone of the browser. */
  clock(unixSeconds: number): string {
    return this.#clock.format(unixSeconds * 1000);
  }
}

function pair(
  major: string,
  unit: "unit.minutes" | "unit.hours",
  rest: number,
  t: Translate<English>,
): string {
  return rest === 0 ? major : `${major} ${t(unit, { value: rest })}`;
}

export const ENGLISH = new Words("en", en);

/** A fault that the page found itself: its message is English, and what a person reads is in their language. */
export class WordedError extends Error {
  readonly say: (t: Translate<English>) => string;
  constructor(say: (t: Translate<English>) => string) {
    super(say(ENGLISH.t));
    this.say = say;
  }
}
