/** What a port's holders see of threads that take their time. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { openRelayCalls } from "#platform/linux/relay-calls.ts";
import { readAll } from "../../test/support/client.ts";
import { freePorts } from "../../test/support/free-ports.ts";
import type { FrontThreads } from "./front-threads.ts";
import { LOOPBACK_V4 } from "./ip.ts";
import { SocketPool, type Lease } from "./socket-pool.ts";

const calls = openRelayCalls();
const skip = calls === null ? "needs node:ffi" : false;

/** Threads that stop listening when they are told to, one listening after the other. */
function slowThreads(): { readonly threads: FrontThreads; readonly stops: (() => void)[] } {
  assert.ok(calls !== null);
  const stops: (() => void)[] = [];
  const threads: FrontThreads = {
    duplicate: (fd) => calls.duplicate(fd),
    close: (fd) => calls.close(fd),
    listen(fd) {
      const own = calls.duplicate(fd);
      return {
        stop() {
          const { promise, resolve } = Promise.withResolvers<void>();
          stops.push(() => (calls.close(own), resolve()));
          return promise;
        },
      };
    },
  };
  return { threads, stops };
}

async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await setImmediate();
}

test(
  "a port that is given up, taken and given up again while threads are slow is free all the time",
  { skip },
  async () => {
    const { threads, stops } = slowThreads();
    const pool = new SocketPool();
    pool.useThreads(threads);
    const [port = 0] = await freePorts(1);
    const ask = { ip: LOOPBACK_V4, port, owner: "" };
    const front = { handshake: "none", probes: null, on() {} } as const;
    const take = async (): Promise<Lease> => {
      const lease = await pool.leaseTcp(ask, (socket) => socket.end("here"), front);
      lease.activate();
      return lease;
    };
    const giveUp = async (lease: Lease): Promise<void> => lease[Symbol.asyncDispose]();
    const first = giveUp(await take());
    const second = giveUp(await take());
    stops[0]?.(); // what listened for the first
    await someTurns();
    await using third = await take();
    stops[1]?.();
    await Promise.all([first, second]);
    pool.useThreads(null);
    await someTurns();
    stops[2]?.();
    const client = connect(third.endpoint.port, LOOPBACK_V4);
    assert.equal((await readAll(client)).toString(), "here");
  },
);

test("threads that are slow hold a port whose next holder gave up before it began", { skip }, async () => {
  const { threads, stops } = slowThreads();
  const pool = new SocketPool();
  pool.useThreads(threads);
  const [port = 0] = await freePorts(1);
  const ask = { ip: LOOPBACK_V4, port, owner: "" };
  const front = { handshake: "none", probes: null, on() {} } as const;
  const lease = await pool.leaseTcp(ask, () => {}, front);
  lease.activate();
  const first = lease[Symbol.asyncDispose]();
  const second = (await pool.leaseTcp(ask, () => {}, front))[Symbol.asyncDispose]();
  let isFree = false;
  void second.then(() => (isFree = true));
  await someTurns();
  assert.equal(isFree, false);
  stops[0]?.();
  await Promise.all([first, second]);
  await using again = await pool.leaseTcp(ask, () => {}, front);
  assert.equal(again.endpoint.port, port);
});
