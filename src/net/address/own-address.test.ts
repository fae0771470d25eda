import assert from "node:assert/strict";
import { test } from "node:test";
import { openAcceptCalls } from "#platform/linux/accept-calls.ts";
import type { Ip } from "#core/session.ts";
import { bytesOfIp } from "./ip.ts";
import { ForeignAddresses, ownAddresses } from "./own-address.ts";

test("what has not been seen is asked for at once, and what has been is not asked for again", () => {
  const asked: Ip[] = [];
  const own = new Set<Ip>(["203.0.113.1" as Ip]);
  const foreign = new ForeignAddresses((ip) => asked.push(ip) > 0 && own.has(ip));
  const has = (ip: string): boolean => foreign.has(ip as Ip);
  assert.deepEqual([has("203.0.113.1"), has("203.0.113.2"), has("203.0.113.2")], [false, true, true]);
  own.add("203.0.113.3" as Ip); // a new one
  assert.equal(has("203.0.113.3"), false);
  assert.deepEqual(asked, ["203.0.113.1", "203.0.113.2", "203.0.113.3"]);
  assert.deepEqual([has("127.0.0.9"), has("::1")], [false, false], "which are always ours");
  assert.equal(asked.length, 3);
});

const calls = openAcceptCalls();
const skip = calls === null ? "SKIP own addresses of the kernel: needs Linux and node:ffi" : false;

test("the kernel says whether an address is this machine's", { skip }, () => {
  const mayBeOwn = (ip: Ip): boolean => calls?.mayBeOwn(bytesOfIp(ip)) === true;
  const loopback = ["127.0.0.1", "127.9.9.9"] as Ip[];
  for (const ip of [...loopback, ...ownAddresses()]) assert.equal(mayBeOwn(ip), true, ip);
  for (const ip of ["192.0.2.77", "2001:db8::77"] as Ip[]) assert.equal(mayBeOwn(ip), false, ip);
});
