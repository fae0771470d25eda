/** The languages of what people read in a browser. */

export const LANGUAGES = ["en", "zh", "fa", "ru"] as const;
export type Language = (typeof LANGUAGES)[number];

/** As each calls itself. */
export const LANGUAGE_NAMES: Readonly<Record<Language, string>> = {
  en: "English",
  zh: "简体中文",
  fa: "فارسی",
  ru: "Русский",
};

export const directionOf = (language: Language): "ltr" | "rtl" => (language === "fa" ? "rtl" : "ltr");

export const isLanguage = (text: unknown): text is Language =>
  LANGUAGES.some((language) => language === text);

/** The first of ours among tags such as `zh-CN` (BCP 47), the most wanted first; English where none is. */
export function languageOf(tags: readonly string[]): Language {
  for (const tag of tags) {
    const [primary = ""] = tag.trim().toLowerCase().split("-");
    if (isLanguage(primary)) return primary;
  }
  return "en";
}

/** More are not looked at. */
const MOST_TAGS = 32;

/** The tags of an `Accept-Language` (RFC 9110 §12.5.4), the most wanted first; what is refused (`q=0`) is left out. */
export function acceptedLanguages(header = ""): readonly string[] {
  return header
    .split(",", MOST_TAGS)
    .map((item) => {
      const [tag = "", ...parameters] = item.split(";").map((part) => part.trim());
      const weight = parameters.find((parameter) => /^q=/i.test(parameter))?.slice(2);
      return { tag, weight: weight === undefined ? 1 : Number(weight) };
    })
    .filter(({ tag, weight }) => tag !== "" && weight > 0)
    .toSorted((a, b) => b.weight - a.weight)
    .map(({ tag }) => tag);
}
