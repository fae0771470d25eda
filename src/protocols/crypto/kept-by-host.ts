import type { HostMemory } from "#core/host-memory.ts";

/** See `HostMemory`. Bounded by the number of classes that protocols have. */
export class KeptByHost implements HostMemory {
  readonly #kept = new Map<new () => object, object>();

  of<Kept extends object>(kind: new () => Kept): Kept {
    const known = this.#kept.get(kind);
    if (known instanceof kind) return known;
    const made = new kind();
    this.#kept.set(kind, made);
    return made;
  }
}
