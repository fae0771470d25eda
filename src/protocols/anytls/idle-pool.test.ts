import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClientSession } from "./client-session.ts";
import { IdlePool } from "./idle-pool.ts";

test("idle pool: the youngest first; old ones go, but for so many of the youngest", () => {
  const pool = new IdlePool({ checkIntervalMs: 1_000_000, timeoutMs: 10, minIdle: 1 });
  const closed: number[] = [];
  const make = (sequence: number) => {
    const session = {
      sequence,
      close: () => (closed.push(sequence), pool.remove(session)),
    } as unknown as ClientSession;
    return session;
  };
  const sessions = [1, 2, 3].map(make);
  for (const session of sessions) pool.put(session);
  assert.equal(pool.take()?.sequence, 3);
  pool.check(performance.now() + 11);
  assert.deepEqual(closed, [1]);
  assert.equal(pool.take()?.sequence, 2);
  assert.equal(pool.take(), null);
  pool.put(sessions[0] as ClientSession);
  pool[Symbol.dispose]();
  pool.put(sessions[1] as ClientSession);
  assert.deepEqual(closed, [1, 1, 2]);
});
