import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { StoreError } from "#core/errors.ts";
import type { EventDraft, EventUser } from "#core/events.ts";
import { SILENT } from "#core/log.ts";
import type { Change } from "#store/kv.ts";
import { until } from "../../test/support/until.ts";
import { EventLog, type EventKeeper } from "./event-log.ts";
import { openReports } from "./event-reports.ts";
import { EVENTS, HEADS, MARKS } from "./parts.ts";

const KEEPS_NONE: EventKeeper = { plan: () => [], planned() {}, holds: () => false };
const draft = (subject: string): EventDraft => ({ type: "user.changed", subject, data: {} });

function memory() {
  const parts = new Map([EVENTS, MARKS, HEADS].map((part) => [part, new Map<string, Buffer>()]));
  const state = { refuses: false };
  const commit = async (changes: Iterable<Change>): Promise<void> => {
    await Promise.resolve();
    if (state.refuses) throw new StoreError("disk full");
    for (const { part, key, value } of changes)
      if (value === null) parts.get(part)?.delete(key);
      else parts.get(part)?.set(key, Buffer.from(value));
  };
  const of = (part: string) => [...(parts.get(part) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  const records = () => ({ events: of(EVENTS), marks: of(MARKS), heads: of(HEADS) });
  return { store: { commit }, state, records };
}

function open({ store, records }: ReturnType<typeof memory>, keeper = KEEPS_NONE) {
  return new EventLog(store, records(), keeper, { log: SILENT, nowMs: () => 1 });
}

test("events are numbered in their order, told once they are written, and can be had again behind any of them", async () => {
  const file = memory();
  using log = open(file);
  const told: number[] = [];
  using _watch = log.watch(({ seq }) => told.push(seq));
  for (let at = 0; at < 5; at++) log.emit(draft(`s${at}`));
  assert.deepEqual(told, []);
  await until("five events", () => told.length === 5);
  using again = open(file);
  for (const each of [log, again]) {
    assert.deepEqual(
      each.since(3).events.map(({ seq, subject }) => [seq, subject]),
      [
        [4, "s3"],
        [5, "s4"],
      ],
    );
    assert.deepEqual(
      [each.since(5), each.since(null)],
      [
        { events: [], isCut: false },
        { events: [], isCut: false },
      ],
    );
    assert.equal(each.since(99).isCut, true);
  }
});

test("an event that is still being written is no gap for a client that comes back meanwhile", async () => {
  const file = memory();
  const [gate, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let isHeld = false;
  const commit = async (changes: Iterable<Change>): Promise<void> => {
    if (isHeld) {
      begun.resolve();
      await gate.promise;
    }
    await file.store.commit(changes);
  };
  using log = open({ ...file, store: { commit } });
  for (let at = 0; at < 2; at++) log.emit(draft(`s${at}`));
  await log.settled();
  isHeld = true;
  log.emit(draft("s2"));
  const written = log.settled();
  await begun.promise;
  assert.deepEqual(
    [log.since(1).events.map(({ seq }) => seq), log.since(1).isCut, log.since(2)],
    [[2], false, { events: [], isCut: false }],
  );
  gate.resolve();
  await written;
  assert.deepEqual(
    log.since(1).events.map(({ seq }) => seq),
    [2, 3],
  );
});

test("what the ring has no more is said to be gone, unless it is held", async () => {
  const file = memory();
  using log = open(file, { ...KEEPS_NONE, holds: (seq) => seq === 2 });
  let written = 0;
  using _watch = log.watch(() => written++);
  for (let at = 0; at < 4200; at++) log.emit(draft("s"));
  await until("all of them", () => written === 4200);
  log.emit(draft("s"));
  await until("one more", () => written === 4201);
  assert.deepEqual([log.since(0).events.length, log.since(0).isCut], [4096, true]);
  assert.equal(log.event(2)?.seq, 2);
  assert.equal(log.event(3), null);
  assert.ok(file.records().events.length <= 4096 + 257);
});

test("while the medium refuses, events wait, and beyond a bound their number is told", async () => {
  const file = memory();
  file.state.refuses = true;
  using log = open(file);
  for (let at = 0; at < 9000; at++) log.emit(draft(`s${at}`));
  await delay(50);
  file.state.refuses = false;
  let last: EventDraft | null = null;
  using _watch = log.watch((event) => (last = event));
  await until("the last", () => last?.type === "events.lost", { withinMs: 10_000 });
  assert.deepEqual((last as EventDraft | null)?.data, { count: 9000 - 8192 });
});

test("a state is reported when it changes, a user's address once, a limit once an hour, also behind a restart", async () => {
  const file = memory();
  let nowMs = 10 * 3_600_000;
  const user: EventUser = { id: "u", name: "alice", listener: "edge" };
  const types: string[] = [];
  const session = async (work: (sinks: ReturnType<typeof openReports>) => void) => {
    using log = open(file);
    using _watch = log.watch(({ type }) => types.push(type));
    work(
      openReports({
        nowMs: () => nowMs,
        when: (report) => report(),
        markOf: (key) => log.markOf(key),
        emit: (one, mark) => log.emit(one, mark),
      }),
    );
    let isWritten = false;
    log.emit(draft("end"), null, () => (isWritten = true));
    await until("the end", () => isWritten);
    types.pop();
  };
  await session((sinks) => {
    sinks.limited(user, null);
    sinks.limited(user, "limited");
    sinks.limited(user, "limited");
    sinks.connected(user, "192.0.2.1");
    sinks.connected(user, "192.0.2.1");
    sinks.connected(user, "2001:db8::1");
    sinks.connected(user, "2001:db8::2");
    sinks.refused(user, "connections");
    sinks.refused(user, "connections");
    sinks.node("n", true);
    sinks.node("n", false);
  });
  const first = [
    "user.over-quota",
    "user.first-connection",
    "user.new-address",
    "user.limit-reached",
    "node.dead",
  ];
  assert.deepEqual(types.splice(0), first);
  nowMs += 3_599_999;
  await session((sinks) => {
    sinks.limited(user, "limited");
    sinks.connected(user, "192.0.2.1");
    sinks.refused(user, "connections");
    sinks.node("n", false);
  });
  assert.deepEqual(types, []);
  nowMs += 1;
  await session((sinks) => {
    sinks.limited(user, null);
    sinks.refused(user, "connections");
    sinks.node("n", true);
  });
  assert.deepEqual(types, ["user.back", "user.limit-reached", "node.back"]);
});
