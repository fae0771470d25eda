/** Texts in a person's language: parameters, plural forms, numbers as the language writes them. */
import type { Language } from "./languages.ts";

/** Forms by the categories of `Intl.PluralRules`; the parameter `count` picks one. */
export type PluralText = Readonly<Partial<Record<Intl.LDMLPluralRule, string>>> & { readonly other: string };

/** `{name}` stands for a parameter. */
export type Text = string | PluralText;
export type Catalogue = Readonly<Record<string, Text>>;

/** What a catalogue in another language has to have: the same keys, plural where that text is. */
export type SameKeys<Of extends Catalogue> = {
  readonly [Key in keyof Of]: Of[Key] extends string ? string : PluralText;
};

type NamesOf<Of> = Of extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesOf<Rest> : never;
type Given<Of> = Of extends string
  ? NamesOf<Of>
  : Of extends PluralText
    ? NamesOf<Of["other"]> | "count"
    : never;

export type Value = string | number;
export type Values = Readonly<Record<string, Value>>;

/** The text of a key with its parameters, which the text's type names. Numbers are written as the language does. */
export type Translate<Of extends Catalogue> = <Key extends keyof Of>(
  key: Key,
  ...values: [Given<Of[Key]>] extends [never] ? [] : [values: Readonly<Record<Given<Of[Key]>, Value>>]
) => string;

/** `Of` is the type of the English catalogue, `catalogue` the one in the language. */
export function translator<Of extends Catalogue>(language: Language, catalogue: SameKeys<Of>): Translate<Of> {
  const plural = new Intl.PluralRules(language);
  const number = new Intl.NumberFormat(language);
  return (key, ...[values]) => {
    const text: Text = catalogue[key];
    const given: Values = values ?? {};
    const form =
      typeof text === "string" ? text : (text[plural.select(Number(given["count"]))] ?? text.other);
    return form.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
      const value = given[name] ?? whole;
      return typeof value === "number" ? number.format(value) : value;
    });
  };
}
