/** What every part of the page may use; made once in `main.tsx`. */
import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import type { AdminLink } from "#ui/api/admin.ts";
import type { Link } from "#ui/api/link.ts";
import { openStream } from "#ui/api/stream.ts";
import { WordedError, type Words } from "#ui/words/words.ts";
import type { Speedometer } from "./live.ts";
import type { LanguageChoice } from "./language.ts";
import type { Notices } from "./notices.ts";
import type { Unkept } from "./running-settings.ts";
import type { Order } from "./sorted.ts";
import { useStore, type Store } from "./store.ts";
import type { ThemeChoice } from "./theme.ts";
import type { TrafficWatch } from "./traffic.ts";

export interface Environment {
  readonly link: Link;
  readonly admin: AdminLink;
  readonly notices: Notices;
  readonly theme: ThemeChoice;
  readonly language: LanguageChoice;
  readonly watch: TrafficWatch;
  /** Of the connections, whichever page reads them. */
  readonly meter: Speedometer;
  /** The configuration file as typed and not applied; null: as it is. */
  readonly draft: Store<string | null>;
  /** Running settings that were changed here and are not in the file. */
  readonly unkept: Store<Unkept>;
  /** Of each table, that a person chose last. */
  readonly orders: Map<string, Order | null>;
}

export const Shared = createContext<Environment | null>(null);

export function useEnvironment(): Environment {
  const environment = useContext(Shared);
  if (environment === null) throw new Error("used outside of the page");
  return environment;
}

/** The texts of the page, in the language that is chosen. */
export const useWords = (): Words => useStore(useEnvironment().language.words);

export interface Resource<T> {
  /** Null until the first answer; stays while it is asked for anew. */
  readonly value: T | null;
  readonly error: string | null;
  reload(): Promise<void>;
}

/** A document of the API, asked for when the part appears, when the Controller comes back, and every `everyMs`. */
export function useResource<T>(path: string, everyMs = 0): Resource<T> {
  const { link } = useEnvironment();
  const { kind } = useStore(link.state);
  const { state, ask: reload } = useLatest(path, () => link.get<T>(path));
  useEffect(() => {
    if (kind !== "ready" || path === "") return;
    void reload();
    if (everyMs === 0) return;
    const timer = setInterval(() => {
      if (!document.hidden) void reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [kind, path, everyMs]);
  return { ...state, reload };
}

/** As `useResource`, of the admin API: asked for anew whenever one of `when` changes. */
export function useAdminResource<T>(path: string, when: readonly unknown[]): Resource<T> {
  const { admin } = useEnvironment();
  const { state, ask } = useLatest(path, () => admin.call<T>("GET", path));
  useEffect(() => void ask(), [path, ...when]);
  return { ...state, reload: ask };
}

/** The newest answer to a question; `key` says which one it is. An answer that a newer one has overtaken, or to another question, is not shown. */
function useLatest<T>(key: string, question: () => Promise<T>) {
  const words = useWords();
  const [state, set] = useState<Pick<Resource<T>, "value" | "error">>({ value: null, error: null });
  const now = useRef({ key, asked: 0, shown: 0 });
  if (now.current.key !== key) now.current = { key, asked: 0, shown: 0 };
  const ask = async (): Promise<void> => {
    const round = now.current;
    const mine = ++round.asked;
    const show = (next: (value: T | null) => typeof state): void => {
      if (now.current !== round || mine < round.shown) return;
      round.shown = mine;
      set((before) => next(before.value));
    };
    await question().then(
      (value) => show(() => ({ value, error: null })),
      (error: unknown) => show((value) => ({ value, error: textOf(words, error) })),
    );
  };
  return { state, ask };
}

/** Records of a stream while the part is on the page and the page is looked at; `onOpen`: it begins, or begins anew. */
export function useStream<T>(path: string, on: (record: T) => void, onOpen?: () => void): void {
  const { link } = useEnvironment();
  useEffect(() => {
    let close: (() => void) | null = null;
    const follow = (): void => {
      close?.();
      close = document.hidden ? null : openStream<T>(link, path, on, onOpen);
    };
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => {
      document.removeEventListener("visibilitychange", follow);
      close?.();
    };
  }, [path]);
}

/** Runs what a person asked for and says how it went; true: it went well. */
export function useAction(): (work: () => Promise<void>, failed: string, done?: string) => Promise<boolean> {
  const { notices } = useEnvironment();
  const words = useWords();
  return async (work, failed, done) => {
    try {
      await work();
      if (done !== undefined) notices.say("done", done);
      return true;
    } catch (error) {
      notices.say("failed", `${failed}: ${textOf(words, error)}`);
      return false;
    }
  };
}

/** What a person reads of a fault: what the Controller says is English. */
export function textOf({ t }: Words, error: unknown): string {
  if (error instanceof WordedError) return error.say(t);
  return error instanceof Error ? error.message : String(error);
}
