/** A store without a thread, for tests that open hundreds of them. It answers as late as a thread would. */
import { Store } from "#store/backup.ts";
import type { StoreOptions } from "#store/store-options.ts";
import type { OpenedStore } from "#store/opened-store.ts";

interface Waiting {
  readonly work: () => void;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** As `openStoreThread`. */
export async function openStoreHere(options: StoreOptions): Promise<OpenedStore> {
  const store = Store.open(options);
  const records = new Map(options.parts.map((part) => [part, [...store.entries(part)]] as const));
  const waiting: Waiting[] = [];
  const next = (): void => {
    const first = waiting.shift();
    if (first === undefined) return; // done by closeNow
    try {
      first.work();
      first.resolve();
    } catch (error) {
      first.reject(error);
    }
  };
  /** In order, and never in the turn in which it was asked for. */
  const ask = (work: () => void): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    waiting.push({ work, resolve, reject });
    setImmediate(next);
    return promise;
  };
  return {
    records,
    store: {
      commit(changes, how) {
        const all = [...changes];
        return ask(() => store.commit(all, how));
      },
      compact: () => ask(() => store.compact()),
      close: () => ask(() => store[Symbol.dispose]()),
      closeNow() {
        while (waiting.length > 0) next();
        store[Symbol.dispose]();
      },
    },
  };
}
