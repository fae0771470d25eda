import assert from "node:assert/strict";
import { test } from "node:test";
import type { Connection } from "#ui/api/types.ts";
import { ageMs, arrange, endedOf, Speedometer } from "#ui/state/live.ts";

function connection(id: string, part: Partial<Connection> = {}, host = `${id}.example`): Connection {
  const metadata = {
    network: "tcp",
    type: "Socks5",
    host,
    sniffHost: "",
    destinationIP: "",
    destinationPort: "443",
  };
  const rest = { sourceIP: "10.0.0.1", inboundName: "in", inboundUser: "", process: "" };
  return {
    id,
    metadata: { ...metadata, ...rest } as Connection["metadata"],
    upload: 0,
    download: 0,
    start: "2026-01-01T00:00:00Z",
    chains: ["Node", "Group"],
    rule: "Match",
    rulePayload: "",
    ...part,
  };
}

const snapshot = (connections: readonly Connection[] | null) => ({
  connections,
  downloadTotal: 0,
  uploadTotal: 0,
  memory: 0,
});

test("speeds are differences between snapshots; a new connection has none yet", () => {
  const meter = new Speedometer();
  assert.deepEqual(meter.read(snapshot(null), 0), []);
  assert.equal(meter.read(snapshot([connection("a", { download: 5000 })]), 1000)[0]?.downSpeed, 0);
  const [a, b] = meter.read(
    snapshot([connection("a", { download: 9000 }), connection("b", { upload: 7 })]),
    3000,
  );
  assert.deepEqual([a?.downSpeed, a?.upSpeed, b?.upSpeed], [2000, 0, 0]);
});

test("the filter looks at names, rules, ways and sources; orders are total", () => {
  const live = new Speedometer().read(
    snapshot([
      connection("a", { start: "2026-01-01T00:00:02Z", download: 1 }),
      connection("b", { start: "2026-01-01T00:00:01Z", download: 3, rulePayload: "Special" }),
      connection("c", { start: "2026-01-01T00:00:03Z", download: 2 }, "zzz.example"),
    ]),
    0,
  );
  const ids = (filter: string, order: Parameters<typeof arrange>[2]) =>
    arrange(live, filter, order)
      .map(({ id }) => id)
      .join("");
  assert.deepEqual(
    [ids("", "newest"), ids("", "oldest"), ids("", "download"), ids("", "name")],
    ["cab", "bac", "bca", "abc"],
  );
  assert.deepEqual(
    [ids(" SPECIAL ", "newest"), ids("zzz", "newest"), ids("10.0.0.1", "newest"), ids("node", "oldest")],
    ["b", "c", "cab", "bac"],
  );
});

test("those that have ended have the time that they took and their reason, by which they are found", () => {
  const ended = {
    ...connection("a", { download: 5 }),
    end: "2026-01-01T00:00:05.000+00:00",
    reason: "not-dialled" as const,
    detail: "connection refused",
  };
  const [one, ...more] = endedOf([ended]);
  assert.ok(one !== undefined && more.length === 0);
  assert.deepEqual([ageMs(one), one.reason, one.upSpeed], [5000, "not-dialled", 0]);
  assert.equal(arrange([one], "refused", "newest").length, 1);
  assert.equal(arrange([one], "far side", "newest").length, 0);
});
