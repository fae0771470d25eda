/** The five maps of the classifier (kernel-direct.md §4.1) and the protocol by which their content changes (§4.4). */
import { randomInt } from "node:crypto";
import { duplicateDescriptor } from "#platform/handover.ts";
import type { Bpf, MapShape } from "#platform/linux/bpf.ts";
import { isIpv6, lpmKey, type Decision } from "./prefixes.ts";
import { COUNTER, FLOW_KEY_BYTES, FLOW_VALUE_BYTES, type ProgramOptions } from "./program.ts";

export interface Count {
  readonly packets: number;
  readonly bytes: number;
}

/** Exclusive; half of it, because even numbers are counted. */
const GENERATIONS = 2 ** 31;
const ZERO = new Uint8Array(4);
const COUNTER_BYTES = 16;
const NAMES = ["ipv4", "ipv6", "flows", "generation", "counters"] as const;

export interface Sizes {
  readonly prefixes: number;
  readonly flows: number;
  /** See `ClassifierOptions.ways`. */
  readonly ways: number | null;
}

export class Maps implements Disposable {
  readonly descriptors: ProgramOptions["maps"];
  readonly #bpf: Bpf;
  readonly #cpus: number;
  readonly #content = new Map<string, Decision>();
  /** Begins anywhere: decisions that another classifier has cached in the same map are of no generation of this one. */
  #generation = randomInt(GENERATIONS) * 2;

  /** `cpus`: those that could exist. Throws with nothing left open. */
  constructor(bpf: Bpf, sizes: Sizes, cpus: number) {
    this.#bpf = bpf;
    this.#cpus = cpus;
    using undo = new DisposableStack();
    const make = (shape: MapShape): number => {
      const descriptor = bpf.createMap(shape);
      undo.defer(() => bpf.close(descriptor));
      return descriptor;
    };
    const trie = (keyBytes: number): MapShape => ({
      kind: "lpmTrie",
      keyBytes,
      valueBytes: 4,
      maxEntries: sizes.prefixes,
    });
    const adopt = (ways: number): number => {
      const descriptor = duplicateDescriptor(ways);
      undo.defer(() => bpf.close(descriptor));
      return descriptor;
    };
    const flows: MapShape = {
      kind: "lruHash",
      keyBytes: FLOW_KEY_BYTES,
      valueBytes: FLOW_VALUE_BYTES,
      maxEntries: sizes.flows,
    };
    this.descriptors = {
      ipv4: make(trie(8)),
      ipv6: make(trie(20)),
      flows: sizes.ways === null ? make(flows) : adopt(sizes.ways),
      generation: make({ kind: "array", keyBytes: 4, valueBytes: 4, maxEntries: 1 }),
      counters: make({ kind: "perCpuArray", keyBytes: 4, valueBytes: COUNTER_BYTES, maxEntries: 3 }),
    };
    undo.move();
  }

  /** The prefixes that are in the kernel. */
  get content(): ReadonlyMap<string, Decision> {
    return this.#content;
  }

  /**
   * Null in `changes`: take the prefix out. Each prefix goes from its old decision to its new one in one step, and no packet
   * finds none: one that passed while others are redirected would begin or end a connection in the wrong place. What
   * changes once the program is attached are single addresses, so no decision depends on two writes. When it throws, every
   * packet passes from then on.
   */
  change(changes: ReadonlyMap<string, Decision | null>): void {
    try {
      for (const v6 of [false, true]) {
        const own = [...changes].filter(([prefix]) => isIpv6(prefix) === v6);
        this.#delete(own.filter(([, decision]) => decision === null).map(([prefix]) => prefix));
        this.#write(
          own.filter((change): change is [string, Decision] => change[1] !== null),
          v6 ? this.descriptors.ipv6 : this.descriptors.ipv4,
        );
      }
      this.#setGeneration(this.#generation + 2);
    } catch (error) {
      this.disarm();
      throw error;
    }
  }

  /** From here on every packet passes. */
  disarm(): void {
    this.#setGeneration(this.#generation | 1);
  }

  count(counter: keyof typeof COUNTER): Count {
    const key = new Uint8Array(Uint32Array.of(COUNTER[counter]).buffer);
    const values = new BigUint64Array((COUNTER_BYTES / 8) * this.#cpus);
    this.#bpf.lookUp(this.descriptors.counters, key, new Uint8Array(values.buffer));
    let [packets, bytes] = [0n, 0n];
    for (const [at, value] of values.entries())
      if (at % 2 === 0) packets += value;
      else bytes += value;
    return { packets: Number(packets), bytes: Number(bytes) };
  }

  [Symbol.dispose](): void {
    for (const name of NAMES) this.#bpf.close(this.descriptors[name]);
  }

  #setGeneration(generation: number): void {
    this.#generation = generation >>> 0;
    const value = new Uint8Array(Uint32Array.of(this.#generation).buffer);
    this.#bpf.update(this.descriptors.generation, ZERO, value);
  }

  #delete(prefixes: readonly string[]): void {
    const { ipv4, ipv6 } = this.descriptors;
    for (const prefix of prefixes) {
      this.#bpf.delete(isIpv6(prefix) ? ipv6 : ipv4, lpmKey(prefix));
      this.#content.delete(prefix);
    }
  }

  /** All in one call where the kernel can. */
  #write(entries: readonly (readonly [string, Decision])[], map: number): void {
    if (entries.length === 0) return;
    const keys = entries.map(([prefix]) => lpmKey(prefix));
    const values = new Uint8Array(Uint32Array.from(entries, ([, decision]) => decision).buffer);
    if (!this.#bpf.updateAll(map, Buffer.concat(keys), values, entries.length))
      for (const [at, key] of keys.entries()) this.#bpf.update(map, key, values.slice(at * 4, at * 4 + 4));
    for (const [prefix, decision] of entries) this.#content.set(prefix, decision);
  }
}
