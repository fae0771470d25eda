import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { SteadyTime } from "#lib/steady-time.ts";
import type { Change } from "#store/kv.ts";
import { UserCounter } from "#users/counters.ts";
import { Ledger } from "./ledger.ts";
import { Traffic, type TrafficEnv } from "./traffic.ts";

const FIFTY_YEARS_MS = 50 * 365 * 86_400_000;
/** Of the parameters of `weir.upload`. */
const AGES = 7;

/** One user whose node was started with this clock, and a database that can be reached later. */
function world({ wallMs, stored = [] }: { wallMs: number; stored?: readonly Change[] }) {
  const clock = { wallMs, monotonicMs: 5000 };
  const changed = new Set<UserCounter>();
  const counter = new UserCounter(
    "edge",
    "alice",
    { uploadBytes: 0, downloadBytes: 0, allowance: null },
    changed,
  );
  const records = stored.flatMap(({ key, value }) =>
    value === null ? [] : [[key, Buffer.from(value)] as const],
  );
  const told: Change[] = [];
  const sent: unknown[] = [];
  const ledger = new Ledger(stored.length === 0 ? 1 : 2, records);
  const traffic = new Traffic({
    identity: { nodeId: "node", instance: "instance" },
    ledger,
    store: { commit: async (changes: readonly Change[]) => void told.push(...changes) },
    registry: {
      counters: { changed, get: () => counter },
      books: new Map([["edge", { users: new Map([["alice", { trafficGeneration: 1 }]]) }]]),
      time: new SteadyTime({ monotonicMs: () => clock.monotonicMs, wallMs: () => clock.wallMs, boot: null }),
    },
    connection: {
      async query(text: string, values: readonly unknown[]) {
        if (!text.includes("weir.upload")) return [];
        sent.push(values[AGES]);
        return [{ received: String((values[4] as number[]).at(-1)) }];
      },
    },
    log: SILENT,
    nowMs: () => clock.wallMs,
    monotonicMs: () => clock.monotonicMs,
  } as unknown as TrafficEnv);
  return {
    clock,
    traffic,
    told,
    sent,
    async move() {
      counter.count("upload", 10, clock.wallMs);
      await traffic.cut();
    },
    pass(ms: number) {
      clock.wallMs += ms;
      clock.monotonicMs += ms;
    },
  };
}

test("what waited for the database is as old as it is, wherever the clock was set meanwhile", async () => {
  const { clock, traffic, sent, move, pass } = world({ wallMs: 1000 });
  await move();
  pass(3000);
  clock.wallMs += FIFTY_YEARS_MS; // the machine began in 1970
  await move();
  pass(2000);
  await traffic.send();
  assert.deepEqual(sent, [[5000, 2000]]);
});

test("what an earlier process left is as old as the clock says", async () => {
  const before = world({ wallMs: 1_785_312_000_000 });
  await before.move();
  const { traffic, sent } = world({ wallMs: 1_785_312_060_000, stored: before.told });
  await traffic.send();
  assert.deepEqual(sent, [[60_000]]);
});
