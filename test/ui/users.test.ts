import assert from "node:assert/strict";
import { test } from "node:test";
import type { ManagedUser } from "#ui/api/admin-types.ts";
import { merge } from "#ui/state/merge.ts";
import { changesOf, fieldsOfUser, NEW_USER } from "#ui/state/user-fields.ts";
import { UsageHistory, withPast } from "#ui/state/usage-history.ts";

const USER: ManagedUser = {
  id: "1",
  inbound: "edge",
  type: "vless",
  name: "alice",
  flow: "",
  enabled: true,
  upload_bytes: 100,
  download_bytes: 1000,
  active_connections: 0,
  created_at: 1,
  revision: 5,
};
const VLESS = { credential: "uuid" } as const;

test("only what was changed is sent; 0 takes a limit away", () => {
  const limited = {
    ...USER,
    quota: { total_bytes: 2 ** 30, reset: "month", used_bytes: 5 },
    download_bps: 20e6,
    ip_limit: 2,
    expires_at: Date.parse("2030-01-02T03:04"),
  };
  const before = fieldsOfUser(limited);
  assert.deepEqual(changesOf(before, before, VLESS), {});
  const now = { ...before, name: "bob", quota: "", download: "", ips: "", expires: "", credential: "x" };
  assert.deepEqual(changesOf(before, now, VLESS), {
    name: "bob",
    uuid: "x",
    quota: { total_bytes: 0, reset: "month" },
    expires_at: 0,
    download_bps: 0,
    ip_limit: 0,
  });
  const other = changesOf(before, { ...before, expires: "2031-01-02T03:04" }, VLESS);
  assert.deepEqual(other, { expires_at: Date.parse("2031-01-02T03:04") });
  const windowed = { ...before, quota: "5 GB", reset: "window", window: "30d" };
  assert.deepEqual(changesOf(before, windowed, VLESS), { quota: { total_bytes: 5e9, window: "30d" } });
  assert.throws(() => changesOf(before, { ...before, upload: "fast" }, VLESS), /Upload: expected a rate/);
  assert.throws(() => changesOf(before, { ...before, ips: "-1" }, VLESS), /whole number/);
  assert.deepEqual(changesOf(NEW_USER, NEW_USER, VLESS), {});
});

test("what two people changed of one user comes together", () => {
  const before = fieldsOfUser(USER);
  const theirs = fieldsOfUser({ ...USER, enabled: false, name: "theirs" });
  const merged = merge(before, { ...before, name: "mine", download: "1 Mbit/s" }, theirs);
  assert.deepEqual(
    [merged.taken, merged.conflicts].map((list) => list.map(({ path }) => path.join())),
    [["enabled"], ["name"]],
  );
});

test("speeds come from differences; a reset of the counters is no negative speed; a removed user is forgotten", () => {
  const history = new UsageHistory();
  history.read([USER], 0);
  history.read([USER], 0);
  assert.deepEqual(history.of("1").times, [], "silence costs nothing");
  history.read([{ ...USER, upload_bytes: 300, download_bytes: 3000 }], 2000);
  history.read([{ ...USER, upload_bytes: 10, download_bytes: 20 }], 3000);
  assert.deepEqual(history.of("1"), { times: [2, 3], up: [100, 10], down: [1000, 20] });
  history.read([], 4000);
  assert.deepEqual(history.of("1").times, []);
});

test("what the program remembers stands before what was seen since, in steps, and silence is nothing", () => {
  const step = (start: number, download_bytes: number) => ({
    start: start * 1000,
    upload_bytes: 300,
    download_bytes,
  });
  const past = { step_seconds: 300, steps: [step(600, 3000), step(900, 6000), step(1800, 3000)] };
  const live = { times: [2000, 2005], down: [7, 8], up: [1, 1] };
  const { times, down, up } = withPast(past, live);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  );
  const at = (time: number) => down[times.findLastIndex((each) => each <= time)];
  assert.deepEqual([at(599), at(700), at(1000), at(1500), at(1900), at(2001)], [0, 10, 20, 0, 10, 7]);
  assert.deepEqual([times.length, up.at(-1)], [down.length, 1]);
  assert.deepEqual(withPast({ step_seconds: 300, steps: [] }, live), live);
});
