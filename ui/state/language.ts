/** The language of the page: as the browser wants, or as chosen. */
import { directionOf, isLanguage, languageOf, type Language } from "#lib/languages.ts";
import { loadWords } from "#ui/words/load.ts";
import { ENGLISH, type Words } from "#ui/words/words.ts";
import { keepChoice, keptChoice } from "./kept.ts";
import { Store } from "./store.ts";

export type Choice = "auto" | Language;
const KEY = "weir-language";

export class LanguageChoice {
  readonly chosen: Store<Choice>;
  readonly words = new Store<Words>(ENGLISH);

  private constructor() {
    const kept = keptChoice(KEY);
    this.chosen = new Store<Choice>(isLanguage(kept) ? kept : "auto");
  }

  /** Where its texts cannot be fetched the page is in English. */
  static async open(): Promise<LanguageChoice> {
    const choice = new LanguageChoice();
    await choice.#load().catch(() => choice.#apply(ENGLISH));
    return choice;
  }

  /** Rejects where its texts cannot be fetched; the page stays as it is then. */
  async choose(choice: Choice): Promise<void> {
    const before = this.chosen.value;
    this.chosen.set(choice);
    try {
      await this.#load();
    } catch (error) {
      this.chosen.set(before);
      throw error;
    }
    keepChoice(KEY, choice);
  }

  async #load(): Promise<void> {
    const { value } = this.chosen;
    const words = await loadWords(value === "auto" ? languageOf(navigator.languages) : value);
    if (this.chosen.value === value) this.#apply(words); // otherwise another one was chosen meanwhile
  }

  #apply(words: Words): void {
    document.documentElement.lang = words.language;
    document.documentElement.dir = directionOf(words.language);
    this.words.set(words);
  }
}
