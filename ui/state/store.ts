import { useEffect, useState } from "preact/hooks";

/** A value that components can watch. */
export class Store<T> {
  #value: T;
  readonly #watchers = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const watch of this.#watchers) watch();
  }

  watch(on: () => void): () => void {
    this.#watchers.add(on);
    return () => void this.#watchers.delete(on);
  }
}

export function useStore<T>(store: Store<T>): T {
  const [, render] = useState({});
  useEffect(() => {
    render({}); // it may have changed between the first drawing and this
    return store.watch(() => render({}));
  }, [store]);
  return store.value;
}
