/** With fake-ip and redir-host an address may stand for a name: without that they are the main thread's, and others are not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ip } from "#core/session.ts";
import { FakePool } from "#dns/fake-pool.ts";
import { Mapping } from "#dns/mapping.ts";
import { NameTable } from "#lib/name-table.ts";
import { cidrOf } from "#net/address/cidr.ts";
import { bytesOfIp, ipOf } from "#net/address/ip.ts";
import { ADDRESS_KINDS, valuesOf } from "#net/address/known-names.ts";
import { PLAIN_WAY } from "../../../../test/support/decision-data.ts";
import { openOneDecider } from "../../../../test/support/one-decider.ts";
import { randomFrom } from "../../../../test/support/random.ts";
import { runs } from "../../../../test/support/runs.ts";

const FAKE = [cidrOf("198.18.0.0/16"), cidrOf("fdfe:dcba:9876::/64")];

function openBoth() {
  const mapping = new Mapping();
  const namedAddresses = { fake: FAKE, named: [], answered: mapping.addresses.memory };
  const decides = openOneDecider({ namedAddresses });
  return { mapping, decides: (ip: string): boolean => decides({ host: null, ip: ip as Ip, port: 443 }) };
}

test("an address that was answered for a name is asked for from the next connection on, a fake one always", () => {
  const { mapping, decides } = openBoth();
  for (const ip of ["203.0.113.9", "2001:db8::9"]) {
    assert.equal(decides(ip), true);
    mapping.insert(ip as Ip, "a.test");
    assert.equal(decides(ip), false);
  }
  for (const ip of ["198.18.0.4", "198.18.255.255", "fdfe:dcba:9876::4"]) assert.equal(decides(ip), false);
  for (const ip of ["198.19.0.4", "fdfe:dcba:9877::4"]) assert.equal(decides(ip), true);
});

test("where sockets to the loopback are not like others, the main thread dials it", () => {
  const ways = [null, { ...PLAIN_WAY, routingMark: 7, interfaceName: "eth0", loopback: false }];
  const decides = openOneDecider({ ways });
  const plain = openOneDecider({});
  for (const ip of ["127.0.0.1", "127.8.8.8", "::1"].map(ipOf)) {
    assert.equal(decides({ host: null, ip, port: 443 }), false, ip);
    assert.equal(plain({ host: null, ip, port: 443 }), true, ip);
  }
  assert.equal(decides({ host: null, ip: ipOf("203.0.113.9"), port: 443 }), true);
});

test("whatever is remembered and forgotten: what the main thread has a name for is never decided", () => {
  const { mapping, decides } = openBoth();
  const below = randomFrom(5);
  const some = (): Ip => `203.${below(4)}.${below(64)}.${below(64)}` as Ip;
  let decided = 0;
  for (let round = 0; round < runs(40, 10); round++) {
    for (let count = 0; count < 1_000; count++) mapping.insert(some(), `${below(9)}.test`);
    const known = new Set(mapping.exportState().map(([ip]) => ip));
    for (let count = 0; count < 300; count++) {
      const ip = some();
      if (!decides(ip)) continue;
      decided++;
      assert.ok(!known.has(ip), ip);
    }
    for (const ip of known) assert.equal(decides(ip), false, ip);
  }
  assert.ok(decided > 100, "most others are");
});

test("a fake address is decided as the name for which it was given, for as long as it is", () => {
  const range = { ip: "198.18.0.1" as Ip, bits: 28 };
  const pool = new FakePool(range, () => {});
  const table = new NameTable();
  const choice = { number: 1, ipv6: false, family: null, prefersV6: false };
  const decides = openOneDecider({
    namedAddresses: { fake: FAKE, named: [pool.named], answered: new Mapping().addresses.memory },
    names: { known: table.memory, forRules: choice },
    ways: [null, { ...PLAIN_WAY, names: { ...choice, timeoutMs: 250 } }],
  });
  const decidesOn = (ip: Ip): boolean => decides({ host: null, ip, port: 443 });
  const fake = pool.allocate("a.test");
  assert.equal(decidesOn(fake), false, "what the name leads to is not known");
  const nowMs = Date.now();
  table.put(ADDRESS_KINDS, "a.test", valuesOf(1, bytesOfIp("203.0.113.9" as Ip)), nowMs + 60_000, nowMs);
  assert.equal(decidesOn(fake), true);
  assert.equal(decidesOn("198.18.0.9" as Ip), false, "it was given to none");
  for (let at = 0; at < 16; at++) pool.allocate(`${at}.test`);
  assert.notEqual(pool.hostOf(fake), "a.test");
  assert.equal(decidesOn(fake), false, "it is another's by now");
  pool.allocate("a.test");
  assert.equal(decidesOn(pool.ipOfHost("a.test") as Ip), true);
  pool.flush();
  assert.equal(decidesOn(fake), false);
});
