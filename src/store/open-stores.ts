/** The stores that the program has open, for what reads all of them at once. */
import type { OpenedStore, Snapshot, SnapshotStore, SupervisedOptions } from "./opened-store.ts";
import { openSupervisedStore } from "./supervised-store.ts";

export class OpenStores {
  readonly #stores = new Map<string, SnapshotStore>();

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

  /** Null: no store is open there. Rejects with `StoreError`. */
  async snapshot(path: string): Promise<Snapshot | null> {
    return (await this.#stores.get(path)?.snapshot()) ?? null;
  }
}
