/** Light, dark, or as the system says. */
import { keepChoice, keptChoice } from "./kept.ts";
import { Store } from "./store.ts";

export type Theme = "auto" | "light" | "dark";
const KEY = "weir-theme";

export class ThemeChoice {
  readonly chosen: Store<Theme>;

  constructor() {
    const kept = keptChoice(KEY);
    this.chosen = new Store<Theme>(kept === "light" || kept === "dark" ? kept : "auto");
    this.#apply();
  }

  choose(theme: Theme): void {
    this.chosen.set(theme);
    this.#apply();
    keepChoice(KEY, theme);
  }

  #apply(): void {
    document.documentElement.dataset["theme"] = this.chosen.value;
  }
}
