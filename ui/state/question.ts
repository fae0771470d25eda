import { useState } from "preact/hooks";
import { textOf, useEnvironment, useWords } from "./context.ts";

/** The state of a request that the user makes by a button. */
export type Outcome<T> =
  | { readonly kind: "none" | "busy" }
  | { readonly kind: "failed"; readonly text: string }
  | { readonly kind: "answer"; readonly answer: T };

export interface Question<T> {
  readonly outcome: Outcome<T>;
  /** Parameters that are empty are left out. */
  ask(parameters: Readonly<Record<string, string>>): Promise<void>;
}

/** Requests a path of the Controller on demand. */
export function useQuestion<T>(path: string): Question<T> {
  const { link } = useEnvironment();
  const words = useWords();
  const [outcome, setOutcome] = useState<Outcome<T>>({ kind: "none" });
  const ask: Question<T>["ask"] = async (parameters) => {
    setOutcome({ kind: "busy" });
    const given = Object.entries(parameters)
      .map(([key, value]) => [key, value.trim()])
      .filter(([, value]) => value !== "");
    try {
      setOutcome({ kind: "answer", answer: await link.get<T>(`${path}?${new URLSearchParams(given)}`) });
    } catch (error) {
      setOutcome({ kind: "failed", text: textOf(words, error) });
    }
  };
  return { outcome, ask };
}
