/** Both ways of moving bytes between plain sockets: what holds for one holds for the other. */
import { after } from "node:test";
import { openEngine, type Engine } from "#engine/engine.ts";
import type { Carrier } from "#relay/carrier.ts";

export interface Path {
  readonly name: "portable" | "engine" | "handed over";
  readonly carrier: Carrier | null;
}

/** The engine is opened once and closed behind the last test of the file. */
export async function relayPaths(): Promise<readonly Path[]> {
  const portable: Path = { name: "portable", carrier: null };
  if (process.platform !== "linux") return [portable];
  const engine: Engine = await openEngine({
    threads: 2,
    afterBytes: 0,
    onDeath: (why) => {
      throw new Error(`a relay thread died: ${why}`);
    },
  });
  after(() => engine[Symbol.asyncDispose]());
  // By the pump at first, and then at the first moment at which nothing is under way.
  const late: Carrier = {
    afterBytes: 1,
    carry: (pair, meter, options) => engine.carry(pair, meter, options),
  };
  return [portable, { name: "engine", carrier: engine }, { name: "handed over", carrier: late }];
}
