/** The stores that the program has open, for what reads all of them at once. */
import type { LendableStore, OpenedStore, Snapshot, SupervisedOptions } from "./opened-store.ts";
import { openSupervisedStore } from "./supervised-store.ts";

export class OpenStores {
  readonly #stores = new Map<string, LendableStore>();

  /** As `openSupervisedStore`; it is known until it is closed. */
  readonly open = async (options: SupervisedOptions): Promise<OpenedStore> => {
    const { path } = options;
    const { store, records } = await openSupervisedStore(options);
    this.#stores.set(path, store);
    const forget = (): void => {
      if (this.#stores.get(path) === store) this.#stores.delete(path);
    };
    const known = {
      commit: store.commit.bind(store),
      compact: store.compact.bind(store),
      close() {
        forget();
        return store.close();
      },
      closeNow() {
        forget();
        store.closeNow();
      },
    };
    return { store: known, records };
  };

  /**
   * Another process gets the files of all of them: nothing is written here any more. Rejects with `StoreError`, and with
   * none of them lent, where one cannot let go of its files.
   */
  async release(): Promise<void> {
    const lent: LendableStore[] = [];
    try {
      for (const store of this.#stores.values()) {
        lent.push(store);
        await store.release();
      }
    } catch (error) {
      for (const store of lent) await store.reclaim();
      throw error;
    }
  }

  /** Takes back what was lent. Rejects where a file cannot be opened: then it may be called once more. */
  async reclaim(): Promise<void> {
    for (const store of this.#stores.values()) await store.reclaim();
  }

  /** Null: no store is open there. Rejects with `StoreError`. */
  async snapshot(path: string): Promise<Snapshot | null> {
    return (await this.#stores.get(path)?.snapshot()) ?? null;
  }
}
