import assert from "node:assert/strict";
import { test } from "node:test";
import { DialError } from "#core/errors.ts";
import type { Answer } from "#core/resolver.ts";
import type { Ip } from "#core/session.ts";
import { addressesOf } from "#net/address/families.ts";
import type { IpVersion } from "#net/address/families.ts";
import { race } from "./race.ts";

const signal = new AbortController().signal;

/** Attempts that end when the test says so. */
function attempts() {
  const open = new Map<string, { win: () => void; lose: (error: Error) => void; signal: AbortSignal }>();
  const attempt = (name: string, stop: AbortSignal): Promise<string> =>
    new Promise((resolve, reject) => {
      open.set(name, { win: () => resolve(name), lose: reject, signal: stop });
      stop.addEventListener("abort", () => reject(new DialError("aborted", name)));
    });
  return { open, attempt };
}

test("a failure starts the next at once; the first failure is the one that is thrown", async () => {
  const { open, attempt } = attempts();
  const done = race(["a", "b"], attempt, () => {}, { signal, staggerMs: 60_000 });
  assert.deepEqual([...open.keys()], ["a"]);
  open.get("a")?.lose(new DialError("refused", "a"));
  await Promise.resolve().then(() => {});
  assert.deepEqual([...open.keys()], ["a", "b"]);
  open.get("b")?.lose(new DialError("timeout", "b"));
  await assert.rejects(done, { reason: "refused" });
});

test("all at once: the first wins, losers are aborted, a late winner is discarded", async () => {
  const { open, attempt } = attempts();
  const discarded: string[] = [];
  const done = race(["a", "b", "c"], attempt, (made) => void discarded.push(made), { signal, staggerMs: 0 });
  assert.deepEqual([...open.keys()], ["a", "b", "c"]);
  open.get("b")?.win();
  open.get("c")?.win();
  assert.equal(await done, "b");
  assert.ok(open.get("a")?.signal.aborted);
  assert.deepEqual(discarded, ["c"]);
});

test("an abort ends every attempt", async () => {
  const abort = new AbortController();
  const { open, attempt } = attempts();
  const done = race(["a", "b"], attempt, () => {}, { signal: abort.signal, staggerMs: 0 });
  abort.abort();
  await assert.rejects(done, { reason: "aborted" });
  assert.ok([...open.values()].every((one) => one.signal.aborted));
});

const answers = ["192.0.2.1", "192.0.2.2", "2001:db8::1"].map((ip): Answer => ({ ip: ip as Ip, ttlMs: 1 }));
const resolver = {
  lookup: async (_: string, { family }: { family?: 4 | 6 }) =>
    answers.filter(({ ip }) => family === undefined || ip.includes(":") === (family === 6)),
};
const byName = (ipVersion: IpVersion, ipv6 = true) =>
  addressesOf({ host: "a.example", ip: null, port: 1 }, resolver, { ipVersion, ipv6 }, signal);

test("ip-version orders and filters addresses", async () => {
  assert.deepEqual(await byName("dual"), ["192.0.2.1", "2001:db8::1", "192.0.2.2"]);
  assert.deepEqual(await byName("ipv6-prefer"), ["2001:db8::1", "192.0.2.1", "192.0.2.2"]);
  assert.deepEqual(await byName("ipv4-prefer"), ["192.0.2.1", "192.0.2.2", "2001:db8::1"]);
  assert.deepEqual(await byName("ipv4"), ["192.0.2.1", "192.0.2.2"]);
  assert.deepEqual(await byName("ipv6"), ["2001:db8::1"]);
  assert.deepEqual(await byName("dual", false), ["192.0.2.1", "192.0.2.2"]);
});

test("a known address is used as it is, unless its family is off and a name can help", async () => {
  const both = { host: "a.example", ip: "2001:db8::9" as Ip, port: 1 };
  const families = { ipVersion: "ipv4", ipv6: true } as const;
  assert.deepEqual(await addressesOf(both, resolver, { ...families, ipVersion: "dual" }, signal), [both.ip]);
  assert.deepEqual(await addressesOf(both, resolver, families, signal), ["192.0.2.1", "192.0.2.2"]);
  const literal = addressesOf({ ...both, host: null }, resolver, families, signal);
  await assert.rejects(literal, { reason: "unreachable" });
  await assert.rejects(byName("ipv6", false), { reason: "unreachable" });
});
