/** Events of a process that was replaced, in the journal of the one that has taken its place. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import type { EventDraft } from "#core/events.ts";
import { SILENT } from "#core/log.ts";
import { Journal } from "#journal/journal.ts";
import { openStoreHere } from "../support/store-here.ts";
import { until } from "../support/until.ts";

const OVER: EventDraft = { type: "user.over-quota", subject: "user/1", data: {} };
const DELETED: EventDraft = { type: "user.deleted", subject: "user/2", data: {} };

const SETTINGS = { secret: "", audit: { keepMs: 1e12, mostEntries: 100 }, totpKey: null, webhooks: [] };
const send = () => Promise.reject(new Error("no webhook is configured"));
const RUNNING = { version: "1", send };

function openIn(t: TestContext): { readonly journal: Journal; readonly path: string } {
  const folder = mkdtempSync(join(tmpdir(), "weir-events-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const journal = new Journal({
    log: SILENT,
    nowMs: Date.now,
    monotonicMs: () => performance.now(),
    openStore: openStoreHere,
  });
  t.after(() => journal.close());
  return { journal, path: join(folder, "users.db.journal") };
}

test("they wait for the file, and what both have noticed is said once", async (t) => {
  const { journal, path } = openIn(t);
  journal.take(OVER, ["limit/1", "limited"]); // the file is still being opened
  await journal.adopt({ ...SETTINGS, path }, RUNNING);
  journal.sinks.limited({ id: "1", name: "alice", listener: "edge" }, "limited");
  journal.take(OVER, ["limit/1", "limited"]);
  journal.take(DELETED, ["addresses/2", null]);
  const types = (): readonly string[] => journal.events.since(0).events.map(({ type }) => type);
  await until("the last is on the medium", () => types().includes("user.deleted"));
  assert.deepEqual(types(), ["user.over-quota", "program.upgraded", "user.deleted"]);
});

test("what is changed after the file was let go of is for the audit log of the one that has it", async (t) => {
  const { journal, path } = openIn(t);
  await journal.adopt({ ...SETTINGS, path }, RUNNING);
  await journal.release();
  const draft = (target: string) =>
    ({
      actor: { kind: "owner", name: "" },
      from: "pipe",
      request: "",
      action: "user.create",
      target,
    }) as const;
  const told: string[] = [];
  await journal.record(draft("before it serves"));
  journal.forward({ event() {}, audit: ({ target }) => void told.push(target) });
  await journal.record(draft("after it"));
  assert.deepEqual(told, ["before it serves", "after it"]);
});
