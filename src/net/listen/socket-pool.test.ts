/** What a port's holders see of threads that take their time. */
import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { openRelayCalls } from "#platform/linux/relay-calls.ts";
import { readAll } from "../../../test/support/client.ts";
import { freePorts } from "../../../test/support/free-ports.ts";
import type { AcceptOffload, AcceptOptions } from "./accept-offload.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import type { Lease } from "./lease.ts";
import { SocketPool } from "./socket-pool.ts";

const calls = openRelayCalls();
const skip = calls === null ? "needs node:ffi" : false;

/** Threads that stop listening when they are told to, one listening after the other. */
function slowThreads(): { readonly threads: AcceptOffload; readonly stops: (() => void)[] } {
  assert.ok(calls !== null);
  const stops: (() => void)[] = [];
  const threads: AcceptOffload = {
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

/** A pool with such threads, and a way to a port of its own. */
async function openSlowPool(onAccepted: AcceptOptions["onAccepted"]) {
  const { threads, stops } = slowThreads();
  const pool = new SocketPool();
  pool.useThreads(threads);
  const [port = 0] = await freePorts(1);
  const options: AcceptOptions = { handshake: "none", probes: null, onAccepted };
  const take = (): Promise<Lease> => pool.leaseTcp({ ip: LOOPBACK_V4, port, owner: "" }, options);
  return { pool, stops, port, take };
}

const giveUp = async (lease: Lease): Promise<void> => lease[Symbol.asyncDispose]();

async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await setImmediate();
}

test(
  "a port that is given up, taken and given up again while threads are slow is free all the time",
  { skip },
  async () => {
    const { pool, stops, take } = await openSlowPool((connection) => connection.stream().end("here"));
    const begin = async (): Promise<Lease> => {
      const lease = await take();
      lease.activate();
      return lease;
    };
    const first = giveUp(await begin());
    const second = giveUp(await begin());
    stops[0]?.(); // what listened for the first
    await someTurns();
    await using third = await begin();
    stops[1]?.();
    await Promise.all([first, second]);
    pool.useThreads(null);
    await someTurns();
    stops[2]?.();
    const client = connect(third.endpoint.port, LOOPBACK_V4);
    assert.equal((await readAll(client)).toString(), "here");
  },
);

test("slow workers hold a port whose next lease was given up before it began", { skip }, async () => {
  const { stops, port, take } = await openSlowPool(() => {});
  const lease = await take();
  lease.activate();
  const first = giveUp(lease);
  const second = giveUp(await take());
  let isFree = false;
  void second.then(() => (isFree = true));
  await someTurns();
  assert.equal(isFree, false);
  stops[0]?.();
  await Promise.all([first, second]);
  await using again = await take();
  assert.equal(again.endpoint.port, port);
});

test(
  "giving up a port that another lease has ends when no slow worker brings clients any more",
  { skip },
  async () => {
    const { stops, take } = await openSlowPool(() => {});
    const before = await take();
    before.activate();
    await using next = await take();
    next.activate();
    let isThrough = false;
    const given = giveUp(before).then(() => (isThrough = true));
    await someTurns();
    assert.equal(isThrough, false);
    stops[0]?.(); // what listened for the one before
    await given;
    setTimeout(() => stops[1]?.()); // for the end of the test
  },
);
