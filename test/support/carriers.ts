/** The ways of moving bytes between the sides of a conversation: what holds for one holds for the others. */
import assert from "node:assert/strict";
import { after } from "node:test";
import { openEngine, type Engine } from "#engine/engine.ts";
import type { Carrier } from "#relay/carrier.ts";

/** Takes what the threads can take from `afterBytes` on, and counts it. */
export class CountingCarrier implements Carrier {
  taken = 0;
  readonly afterBytes: number;
  readonly #carrier: Carrier;

  constructor(carrier: Carrier, afterBytes: number) {
    this.#carrier = carrier;
    this.afterBytes = afterBytes;
  }

  carry(...args: Parameters<Carrier["carry"]>): Promise<void> | null {
    const carried = this.#carrier.carry(...args);
    if (carried !== null) this.taken++;
    return carried;
  }
}

/** Closed behind the last test of the file; null where this machine or runtime has no relay threads. */
export async function openThreads(threads: number): Promise<Engine | null> {
  if (process.platform !== "linux" || process.getBuiltinModule("node:ffi") === undefined) return null;
  const engine = await openEngine({ threads, onDeath: (why) => assert.fail(`a relay thread died: ${why}`) });
  after(() => engine[Symbol.asyncDispose]());
  return engine;
}

export interface Path {
  readonly name: string;
  /** Null: the pump. */
  readonly carrier: CountingCarrier | null;
}

/** For conversations between plain sockets. */
export async function relayPaths(): Promise<readonly Path[]> {
  const engine = await openThreads(2);
  return [{ name: "portable", carrier: null }, ...pathsOver(engine)];
}

/** At once, and late: by the pump at first, and then at the first moment at which nothing is under way. */
export function pathsOver(engine: Engine | null): readonly Path[] {
  if (engine === null) return [];
  return [
    { name: "engine", carrier: new CountingCarrier(engine, 0) },
    { name: "handed over", carrier: new CountingCarrier(engine, 1) },
  ];
}
