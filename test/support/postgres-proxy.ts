/** Stands between a node and its database, and does to their bytes what networks do. */
import { createServer, connect, type Socket } from "node:net";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";

/** To the database, or back. */
export type Way = "up" | "down";

export interface Fault {
  /**
   * `cut`: both ends are closed; `reset`: both get a reset; `blackhole`: this and all other connections pass nothing any more;
   * `delay`: the rest waits for `delayMs`.
   */
  readonly kind: "cut" | "reset" | "blackhole" | "delay";
  readonly way: Way;
  /** Bytes that still pass, of all connections together. */
  readonly after: number;
  readonly delayMs: number;
}

export interface PostgresProxy extends AsyncDisposable {
  readonly port: number;
  /** From now on; the fault happens once. */
  arm(fault: Fault): void;
  /** No fault is to come, and what is held back is lost. True: the fault has happened. */
  heal(): boolean;
  /** Bytes that have passed since `arm`, or since the start. */
  readonly passed: Readonly<Record<Way, number>>;
}

export async function openPostgresProxy(target: number): Promise<PostgresProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let fault: Fault | null = null;
  let hasHappened = false;
  let isSilent = false;
  const passed = { up: 0, down: 0 };

  const end = (pair: readonly [Socket, Socket], isReset: boolean): void => {
    pairs.delete(pair);
    for (const socket of pair)
      if (isReset) socket.resetAndDestroy();
      else socket.destroy();
  };

  const pass = async (pair: readonly [Socket, Socket], way: Way, chunk: Buffer): Promise<void> => {
    const to = way === "up" ? pair[1] : pair[0];
    if (isSilent) return;
    const mine = fault !== null && fault.way === way ? fault : null;
    if (mine === null || passed[way] + chunk.length <= mine.after) {
      passed[way] += chunk.length;
      to.write(chunk);
      return;
    }
    fault = null;
    hasHappened = true;
    const head = chunk.subarray(0, mine.after - passed[way]);
    passed[way] += head.length;
    to.write(head);
    if (mine.kind === "blackhole") isSilent = true;
    else if (mine.kind === "delay") {
      await sleep(mine.delayMs);
      if (!to.destroyed && !isSilent) to.write(chunk.subarray(head.length));
    } else {
      if (mine.kind === "cut" && head.length > 0) await sleep(1); // what has passed arrives
      end(pair, mine.kind === "reset");
    }
  };

  const server = createServer({ allowHalfOpen: true }, (node) => {
    const database = connect({ port: target, host: "127.0.0.1", allowHalfOpen: true });
    const pair = [node, database] as const;
    pairs.add(pair);
    for (const [way, from] of [
      ["up", node],
      ["down", database],
    ] as const) {
      from.setNoDelay(true);
      // One chunk behind the other, also while one is delayed.
      let order = Promise.resolve();
      from.on("data", (chunk: Buffer) => void (order = order.then(() => pass(pair, way, chunk))));
      from.on("error", () => end(pair, false));
      from.on("end", () => void order.then(() => (isSilent ? undefined : end(pair, false))));
      from.on("close", () => {
        if (!isSilent) end(pair, false);
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    passed,
    arm(next) {
      fault = next;
      hasHappened = false;
      passed.up = 0;
      passed.down = 0;
    },
    heal() {
      fault = null;
      if (isSilent) for (const pair of pairs) end(pair, true);
      isSilent = false;
      return hasHappened;
    },
    async [Symbol.asyncDispose]() {
      for (const pair of pairs) end(pair, true);
      server.close();
      await once(server, "close");
    },
  };
}
