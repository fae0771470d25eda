/** Another user's change came first (409): the question for the user, and what happens with the answer. */
import { useState } from "preact/hooks";
import { ApiError } from "#ui/api/request.ts";
import type { Words } from "#ui/words/words.ts";
import type { Json } from "./merge.ts";

export interface Conflict {
  /** What was edited: `alice`, `the policies`. */
  readonly what: (t: Words["t"]) => string;
  readonly before: Json;
  readonly mine: Json;
  readonly theirs: Json;
}

export interface Question {
  readonly conflict: Conflict;
  /** Sends what a person made of it, on the newer revision. */
  readonly again: (merged: Json) => Promise<unknown>;
}

export interface Conflicts {
  /** Not null while a decision of the user is needed. */
  readonly conflict: Conflict | null;
  /** Null gives up. Throws what the Controller says; the dialog stays open then, and nothing that was typed is lost. */
  decide(merged: Json | null): Promise<void>;
  /** Null: another change came first, and what `ask` answers waits for a decision. Throws everything else. */
  attempt<T>(send: () => Promise<T>, ask: () => Promise<Question>): Promise<{ readonly value: T } | null>;
}

export function useConflicts(): Conflicts {
  const [waiting, setWaiting] = useState<Question | null>(null);
  return {
    conflict: waiting?.conflict ?? null,
    async attempt(send, ask) {
      try {
        return { value: await send() };
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 409) throw error;
        setWaiting(await ask());
        return null;
      }
    },
    async decide(merged) {
      if (merged !== null) await waiting?.again(merged);
      setWaiting((now) => (now === waiting ? null : now)); // another change may have come first once more
    },
  };
}
