import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventDraft, EventUser } from "#core/events.ts";
import { openReports, type Emitter } from "./event-reports.ts";

const USER: EventUser = { id: "u1", name: "Ada", listener: "edge" };

/** Keeps what is emitted and marked; its clock stands still until it is moved. */
function openEmitter() {
  const drafts: EventDraft[] = [];
  const marks = new Map<string, string>();
  let nowMs = Date.UTC(2026, 0, 2);
  const emitter: Emitter = {
    when: (report) => report(),
    nowMs: () => nowMs,
    markOf: (key) => marks.get(key) ?? null,
    emit(draft, mark = null) {
      drafts.push(draft);
      if (mark === null) return;
      const [key, value] = mark;
      if (value === null) marks.delete(key);
      else marks.set(key, value);
    },
  };
  return {
    reports: openReports(emitter),
    pass: (ms: number) => void (nowMs += ms),
    marks,
    /** Types since the last time. */
    types: () => drafts.splice(0).map(({ type }) => type),
    drafts: () => drafts.splice(0),
  };
}

test("what changes to and fro is said when it differs from what was said last", () => {
  const { reports, types } = openEmitter();
  reports.limited(USER, null);
  reports.node("far", true);
  reports.kernelDirect(null);
  assert.deepEqual(types(), [], "that all is well is not worth a first word");
  for (let again = 0; again < 2; again++) {
    reports.limited(USER, "expired");
    reports.node("far", false);
    reports.listener("edge", null);
    reports.kernelDirect("no bpf");
    reports.certificate("listener edge", Date.UTC(2026, 0, 9));
  }
  assert.deepEqual(types(), [
    "user.expired",
    "node.dead",
    "listener.up",
    "kernel-direct.degraded",
    "certificate.expiring",
  ]);
  reports.limited(USER, "limited");
  reports.limited(USER, null);
  reports.node("far", true);
  reports.listener("edge", "EADDRINUSE");
  reports.kernelDirect(null);
  reports.certificate("listener edge", Date.UTC(2026, 3, 9));
  assert.deepEqual(types(), [
    "user.over-quota",
    "user.back",
    "node.back",
    "listener.down",
    "kernel-direct.back",
    "certificate.expiring",
  ]);
});

test("what happens is said each time, with what it is about", () => {
  const { reports, drafts } = openEmitter();
  reports.provider("proxy-provider good", "HTTP status 500");
  reports.provider("proxy-provider good", null);
  reports.healed("/var/lib/weir/policies.db");
  reports.config("file", null);
  reports.config("edit", "line 3: no such group");
  reports.updateFailed("/opt/weir cannot be written");
  assert.deepEqual(
    drafts().map(({ type, subject, data }) => [type, subject, JSON.stringify(data)]),
    [
      [
        "provider.failed",
        "provider/proxy-provider good",
        '{"provider":"proxy-provider good","reason":"HTTP status 500"}',
      ],
      ["provider.refreshed", "provider/proxy-provider good", '{"provider":"proxy-provider good"}'],
      ["store.healed", "stores", '{"file":"policies.db"}'],
      ["config.applied", "configuration", '{"source":"file"}'],
      ["config.refused", "configuration", '{"source":"edit","reason":"line 3: no such group"}'],
      ["program.update-failed", "program", '{"reason":"weir cannot be written"}'],
    ],
  );
  reports.provider("p", "x".repeat(10_000));
  assert.equal(drafts()[0]?.data["reason"], "x".repeat(500));
});

test("a user's first address, and each that is new; a limit that is met again is said once an hour", () => {
  const { reports, types, pass, marks } = openEmitter();
  for (const ip of [
    "192.0.2.1",
    "192.0.2.1",
    "192.0.2.2",
    "2001:db8::1",
    "2001:db8::2:3:4:5",
    "2001:db8:1::1",
  ])
    reports.connected(USER, ip);
  assert.deepEqual(types(), [
    "user.first-connection",
    "user.new-address",
    "user.new-address", // a network of IPv6 is one
    "user.new-address",
  ]);
  assert.ok(![...marks.values()].join().includes("192.0.2"), "no address is kept as it is");
  reports.refused(USER, "addresses");
  reports.refused(USER, "addresses");
  reports.refused(USER, "connections");
  pass(3_600_000);
  reports.refused(USER, "addresses");
  assert.deepEqual(types(), ["user.limit-reached", "user.limit-reached", "user.limit-reached"]);
  reports.deleted(USER);
  reports.connected(USER, "192.0.2.1");
  assert.deepEqual(types(), ["user.deleted", "user.first-connection"]);
});
