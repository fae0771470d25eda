/** English is part of the page; another language is fetched when it is wanted. */
import type { Language } from "#lib/languages.ts";
import type { SameKeys } from "#lib/words.ts";
import type { English } from "./en/index.ts";
import { ENGLISH, Words } from "./words.ts";

const CATALOGUES: Readonly<Record<Exclude<Language, "en">, () => Promise<SameKeys<English>>>> = {
  zh: async () => (await import("./zh/index.ts")).zh,
  fa: async () => (await import("./fa/index.ts")).fa,
  ru: async () => (await import("./ru/index.ts")).ru,
};

/** Rejects where it cannot be fetched. */
export async function loadWords(language: Language): Promise<Words> {
  return language === "en" ? ENGLISH : new Words(language, await CATALOGUES[language]());
}
