/** Light, dark, or as the system says. This choice alone is kept in the browser. */
import { Store } from "./store.ts";

export type Theme = "auto" | "light" | "dark";
const KEY = "weir-theme";

export class ThemeChoice {
  readonly chosen: Store<Theme>;

  constructor() {
    this.chosen = new Store<Theme>(stored());
    this.#apply();
  }

  choose(theme: Theme): void {
    this.chosen.set(theme);
    this.#apply();
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // storage is shut off: the choice lasts as long as the page
    }
  }

  #apply(): void {
    document.documentElement.dataset["theme"] = this.chosen.value;
  }
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}
