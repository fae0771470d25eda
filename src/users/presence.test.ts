import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { NO_LIMITS } from "./limits.ts";
import { type Elsewhere, Presence, Presences, SILENT_MS, type Visit } from "./presence.ts";

const ip = (last: number) => `192.0.2.${last}` as Ip;

class House {
  readonly presence = new Presence();
  readonly closed: string[] = [];
  nowMs = 0;
  elsewhere: Elsewhere | null = null;
  enter(from: number, limits: Partial<typeof NO_LIMITS> = {}, name = `${from}`): Visit | string {
    const close = () => this.closed.push(name);
    return this.presence.enter(ip(from), close, { ...NO_LIMITS, ...limits }, this);
  }
  get online() {
    return this.presence.origins.map(({ ip: from, visits }) => [from, visits.size]);
  }
}

const refusal = (visit: Visit | string): string =>
  typeof visit === "string" ? visit : assert.fail("it was let in");
const entered = (visit: Visit | string): Visit => (typeof visit === "string" ? assert.fail(visit) : visit);

test("connections up to the limit; each that leaves makes room", () => {
  const house = new House();
  const first = entered(house.enter(1, { connections: 2 }));
  entered(house.enter(2, { connections: 2 }));
  assert.match(refusal(house.enter(1, { connections: 2 })), /^2 connections/);
  house.presence.leave(first);
  entered(house.enter(3, { connections: 2 }));
  assert.deepEqual(house.online, [
    [ip(2), 1],
    [ip(3), 1],
  ]);
});

test("addresses up to the limit; more sessions of a known one are welcome", () => {
  const house = new House();
  const visits = [1, 1, 2].map((from) => entered(house.enter(from, { ips: 2 })));
  assert.match(refusal(house.enter(3, { ips: 2 })), /^2 addresses/);
  entered(house.enter(2, { ips: 2 }));
  for (const visit of visits.slice(0, 2)) house.presence.leave(visit);
  entered(house.enter(3, { ips: 2 }));
  assert.deepEqual(house.closed, []);
});

test("an address that has been silent for long gives its place away, the longest first", () => {
  const house = new House();
  const quiet = entered(house.enter(1, { ips: 2 }));
  house.enter(1, { ips: 2 }, "1 again");
  house.nowMs = 1000;
  const other = entered(house.enter(2, { ips: 2 }));
  house.nowMs = SILENT_MS - 1;
  assert.equal(typeof house.enter(3, { ips: 2 }), "string");
  other.origin.seenAtMs = house.nowMs;
  house.nowMs = SILENT_MS;
  entered(house.enter(3, { ips: 2 }));
  assert.deepEqual(house.closed, ["1", "1 again"]);
  house.presence.leave(quiet); // its end comes later and changes nothing
  assert.deepEqual(house.online, [
    [ip(2), 1],
    [ip(3), 1],
  ]);
});

test("lower limits end what came last", () => {
  const house = new House();
  for (const from of [1, 2, 3, 1]) house.enter(from);
  house.presence.enforce({ ...NO_LIMITS, ips: 2 });
  assert.deepEqual(house.closed, ["3"]);
  house.presence.enforce({ ...NO_LIMITS, connections: 1 });
  assert.deepEqual(house.closed, ["3", "2", "1"]);
  assert.deepEqual(house.online, [[ip(1), 1]]);
});

test("what other nodes have counts, an address of both once, and a correction ends what is beyond", () => {
  const house = new House();
  house.elsewhere = { ips: new Set([ip(1), ip(9)]), connections: 3, untilMs: 1 };
  entered(house.enter(1, { ips: 3 }));
  entered(house.enter(2, { ips: 3 }));
  assert.match(refusal(house.enter(3, { ips: 3 })), /^3 addresses/);
  assert.match(refusal(house.enter(1, { connections: 5 })), /^5 connections/);
  entered(house.enter(1, { connections: 6 }));
  house.presence.correct({ refused: [ip(2), ip(7)], connections: null });
  assert.deepEqual(house.closed, ["2"]);
  house.presence.correct({ refused: [], connections: 1 });
  assert.deepEqual(house.online, [[ip(1), 1]]);
});

test("what was told of other nodes counts until its time is over", () => {
  const all = new Presences();
  const who = { listener: "edge", id: "a" };
  const limits = { ...NO_LIMITS, ips: 1 };
  let asked = 0;
  all.onLimited = () => asked++;
  all.tell(who, { ips: new Set([ip(9)]), connections: 1, untilMs: 100 });
  assert.equal(typeof all.enter(who, { ip: ip(1), close() {} }, limits, 99), "string");
  const leave = all.enter(who, { ip: ip(1), close() {} }, limits, 100);
  assert.ok(typeof leave === "function");
  leave();
  assert.equal(asked, 3, "each is reported: it may be wrong");
});

test("a client that has left is forgotten", () => {
  const all = new Presences();
  const who = { listener: "edge", id: "a" };
  const leave = all.enter(who, { ip: ip(1), close() {} }, NO_LIMITS, 0);
  assert.ok(typeof leave === "function");
  assert.notEqual(all.get("edge", "a"), null);
  leave();
  leave();
  assert.equal(all.get("edge", "a"), null);
});
