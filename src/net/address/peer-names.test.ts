import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Ip } from "#core/session.ts";
import { decodeSockaddr, encodeSockaddr, SOCKADDR_BYTES } from "#platform/datagrams.ts";
import { bytesOfIp, ipFromBytes } from "./ip.ts";
import { PeerNames } from "./peer-names.ts";

const ips = ["127.0.0.1", "192.0.2.7", "192.0.2.8", "::1", "2001:db8::7"] as Ip[];
const peer = fc.record({ ip: fc.constantFrom(...ips), port: fc.constantFrom(1, 53, 0xff35) });

test("any sequence of peers: their names become them, and the same peer the same object", () => {
  fc.assert(
    fc.property(fc.array(peer, { maxLength: 40 }), (peers) => {
      const names = new PeerNames(false);
      const memory = new Uint8Array(SOCKADDR_BYTES).fill(0xaa); // of a batch: an earlier name lies behind a shorter one
      for (const { ip, port } of peers) {
        const name = new Uint8Array(SOCKADDR_BYTES);
        memory.set(name.subarray(0, encodeSockaddr(name, { address: bytesOfIp(ip), port })));
        assert.deepEqual(names.endpointOf(memory), { ip, port });
        assert.equal(names.endpointOf(memory), names.endpointOf(memory.slice()));
      }
    }),
  );
});

test("names for the kernel: the same object for the peer before, IPv4 mapped where the socket is of IPv6", () => {
  for (const isV6 of [false, true]) {
    const names = new PeerNames(isV6);
    for (const ip of [...ips, ...ips]) {
      const name = names.nameOf(ip, 53);
      assert.equal(names.nameOf(ip, 53), name);
      assert.equal(name.length, isV6 || ip.includes(":") ? SOCKADDR_BYTES : 16);
      const { address, port } = decodeSockaddr(name) ?? assert.fail("a name");
      assert.deepEqual([ipFromBytes(address), port], [ip, 53]);
      assert.notEqual(names.nameOf(ip, 54), name);
    }
  }
  assert.equal(new PeerNames(false).endpointOf(new Uint8Array(SOCKADDR_BYTES)), null);
});

test("more peers than are remembered", () => {
  const names = new PeerNames(false);
  const name = new Uint8Array(SOCKADDR_BYTES);
  for (let round = 0; round < 2; round++)
    for (let port = 1; port < 10_000; port++) {
      encodeSockaddr(name, { address: Uint8Array.of(10, 0, 0, 1), port });
      assert.deepEqual(names.endpointOf(name), { ip: "10.0.0.1", port });
    }
});
