/** What every part of the page may use; made once in `main.tsx`. */
import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { AdminLink } from "#ui/api/admin.ts";
import type { Link } from "#ui/api/link.ts";
import { openStream } from "#ui/api/stream.ts";
import type { Notices } from "./notices.ts";
import { useStore } from "./store.ts";
import type { ThemeChoice } from "./theme.ts";
import type { TrafficWatch } from "./traffic.ts";

export interface Environment {
  readonly link: Link;
  readonly admin: AdminLink;
  readonly notices: Notices;
  readonly theme: ThemeChoice;
  readonly watch: TrafficWatch;
}

export const Shared = createContext<Environment | null>(null);

export function useEnvironment(): Environment {
  const environment = useContext(Shared);
  if (environment === null) throw new Error("used outside of the page");
  return environment;
}

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
  const [state, set] = useState<{ value: T | null; error: string | null }>({ value: null, error: null });
  const reload = async (): Promise<void> => {
    try {
      set({ value: await link.get<T>(path), error: null });
    } catch (error) {
      set(({ value }) => ({ value, error: textOf(error) }));
    }
  };
  useEffect(() => {
    if (kind !== "ready") return;
    void reload();
    if (everyMs === 0) return;
    const timer = setInterval(() => {
      if (!document.hidden) void reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [kind, path, everyMs]);
  return { ...state, reload };
}

/** Records of a stream while the part is on the page and the page is looked at. */
export function useStream<T>(path: string, on: (record: T) => void): void {
  const { link } = useEnvironment();
  useEffect(() => {
    let close: (() => void) | null = null;
    const follow = (): void => {
      close?.();
      close = document.hidden ? null : openStream<T>(link, path, on);
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
  return async (work, failed, done) => {
    try {
      await work();
      if (done !== undefined) notices.say("done", done);
      return true;
    } catch (error) {
      notices.say("failed", `${failed}: ${textOf(error)}`);
      return false;
    }
  };
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
