import assert from "node:assert/strict";
import { test } from "node:test";
import type { AuditDraft, AuditQuery } from "#core/audit.ts";
import { SILENT } from "#core/log.ts";
import type { Change } from "#store/kv.ts";
import { StoreError } from "#core/errors.ts";
import { AuditLog } from "./audit-log.ts";
import { verifyLines, type Ends } from "./audit-chain.ts";
import { AUDIT, HEADS } from "./parts.ts";

const ALL: AuditQuery = {
  before: null,
  limit: 500,
  actor: null,
  action: null,
  about: null,
  sinceMs: null,
  untilMs: null,
};

function draft(action: string, more: Partial<AuditDraft> = {}): AuditDraft {
  return {
    actor: { kind: "owner", name: "svc" },
    from: "127.0.0.1",
    request: "r",
    action,
    target: "",
    ...more,
  };
}

/** A store in memory, which can refuse. */
function memory() {
  const parts = new Map([AUDIT, HEADS].map((part) => [part, new Map<string, Buffer>()]));
  const state = { refuses: false, commits: 0 };
  const commit = async (changes: Iterable<Change>): Promise<void> => {
    state.commits++;
    await Promise.resolve();
    if (state.refuses) throw new StoreError("disk full");
    for (const { part, key, value } of changes)
      if (value === null) parts.get(part)?.delete(key);
      else parts.get(part)?.set(key, Buffer.from(value));
  };
  const recordsOf = (part: string) => [...(parts.get(part) ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  const records = () => ({ audit: recordsOf(AUDIT), heads: recordsOf(HEADS) });
  return { store: { commit }, state, parts, records };
}

interface OpenOptions {
  readonly keepMs?: number;
  readonly mostEntries?: number;
  readonly nowMs?: () => number;
  readonly monotonicMs?: () => number;
}

function open(
  { store, records }: ReturnType<typeof memory>,
  { keepMs = 1e12, mostEntries = 1000, nowMs = () => 1, monotonicMs = nowMs }: OpenOptions = {},
) {
  return new AuditLog(store, records(), { keepMs, mostEntries }, { log: SILENT, nowMs, monotonicMs });
}

test("entries come back in pages and by what is asked, also from the file", async () => {
  const file = memory();
  const log = open(file);
  for (let at = 1; at <= 7; at++)
    await log.record(draft(at % 2 === 0 ? "user.update" : "PUT /configs", { target: `t${at}` }));
  for (const each of [log, open(file)]) {
    const first = each.page({ ...ALL, limit: 3 });
    assert.deepEqual(
      first.entries.map(({ seq }) => seq),
      [7, 6, 5],
    );
    const rest = each.page({ ...ALL, before: first.next });
    assert.deepEqual([rest.entries.map(({ seq }) => seq), rest.next], [[4, 3, 2, 1], null]);
    assert.deepEqual(
      each.page({ ...ALL, action: "user." }).entries.map(({ seq }) => seq),
      [6, 4, 2],
    );
    assert.deepEqual(
      each.page({ ...ALL, about: "t3" }).entries.map(({ seq }) => seq),
      [3],
    );
    assert.deepEqual(each.verify().faults, []);
  }
});

test("many at once go in few commits, in their order", async () => {
  const file = memory();
  const log = open(file);
  await Promise.all(Array.from({ length: 200 }, (_, at) => log.record(draft(`a${at}`))));
  assert.ok(file.state.commits <= 4, `${file.state.commits} commits`);
  assert.deepEqual(
    log
      .page(ALL)
      .entries.map(({ action }) => action)
      .reverse(),
    Array.from({ length: 200 }, (_, at) => `a${at}`),
  );
});

test("what could not be written is not in the chain, and goes with the next entry", async () => {
  const file = memory();
  const log = open(file);
  await log.record(draft("one"));
  file.state.refuses = true;
  await log.record(draft("two"));
  assert.equal(log.head.seq, 1);
  file.state.refuses = false;
  await log.record(draft("three"));
  assert.deepEqual(
    open(file)
      .page(ALL)
      .entries.map(({ seq, action }) => [seq, action]),
    [
      [3, "three"],
      [2, "two"],
      [1, "one"],
    ],
  );
  assert.deepEqual(open(file).verify().faults, []);
});

test("entries go with their time and beyond their number, and the chain says where it begins", async () => {
  const file = memory();
  let nowMs = 0;
  const log = open(file, { keepMs: 10, mostEntries: 5, nowMs: () => nowMs });
  for (let at = 0; at < 8; at++) await log.record(draft(`a${at}`));
  assert.deepEqual(
    log.page(ALL).entries.map(({ seq }) => seq),
    [8, 7, 6, 5, 4],
  );
  nowMs = 100;
  await log.record(draft("late"));
  assert.deepEqual(
    log.page(ALL).entries.map(({ seq }) => seq),
    [9],
  );
  assert.deepEqual(open(file).verify(), { head: log.head, first: 9, entries: 1, faults: [] });
});

test("a clock that was ahead for a moment takes no entry away", async () => {
  const file = memory();
  const [day, hour] = [86_400_000, 3_600_000];
  let [nowMs, monotonicMs] = [400 * day, 0];
  const log = open(file, { keepMs: 365 * day, nowMs: () => nowMs, monotonicMs: () => monotonicMs });
  const seqs = () => log.page(ALL).entries.map(({ seq }) => seq);
  await log.record(draft("a"));
  nowMs += 3650 * day;
  await log.record(draft("b"));
  nowMs -= 3650 * day;
  await log.record(draft("c"));
  assert.deepEqual(seqs(), [3, 2, 1]);
  nowMs += 366 * day;
  await log.record(draft("d"));
  [nowMs, monotonicMs] = [nowMs + hour, monotonicMs + hour];
  await log.record(draft("e")); // so long it has stood
  assert.deepEqual(seqs(), [5, 4, 3, 2]);
});

test("every entry that was changed, removed or swapped is found, the first and the last, too", async () => {
  const file = memory();
  const log = open(file);
  for (let at = 0; at < 12; at++) await log.record(draft(`a${at}`, { after: { n: at } }));
  const { audit, heads } = file.records();
  const ends: Ends = JSON.parse(String(heads[0]?.[1]));
  const lines = audit.map(([key, value]) => [Number(key), value.toString()] as const);
  assert.deepEqual(verifyLines(lines, ends).faults, []);
  for (let at = 0; at < lines.length; at++) {
    const removed = lines.toSpliced(at, 1);
    assert.ok(verifyLines(removed, ends).faults.length > 0, `removed ${at}`);
    const changed = lines.map(
      ([key, line], n) => [key, n === at ? line.replace("svc", "eve") : line] as const,
    );
    assert.ok(verifyLines(changed, ends).faults.length > 0, `changed ${at}`);
    const other = (at + 1) % lines.length;
    const swapped = lines.map(
      ([key], n) => [key, lines[n === at ? other : n === other ? at : n]?.[1] ?? ""] as const,
    );
    assert.ok(verifyLines(swapped, ends).faults.length > 0, `swapped ${at}`);
  }
  // An exported file has no ends: its last line is vouched for by the head that is printed.
  const exported = lines.map(([, line]) => [null, line] as const);
  assert.equal(verifyLines(exported, null).head.hash, log.head.hash);
  assert.ok(verifyLines(exported.toSpliced(4, 1), null).faults.length > 0);
});

test("a long entry says how long it was, and stays short", async () => {
  const log = open(memory());
  await log.record(draft("big", { after: "x".repeat(100_000), target: "y".repeat(100_000) }));
  const [line = ""] = [...log.lines()];
  assert.ok(line.length < 4096, `${line.length}`);
  assert.match(line, /left_out_bytes":100002/);
});
