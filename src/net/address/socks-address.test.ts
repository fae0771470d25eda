import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Ip } from "#core/session.ts";
import { toDestination } from "./ip.ts";
import { decodeSocksAddress, encodeSocksAddress } from "./socks-address.ts";

const SAMPLES = [
  ["example.com", 80, "030b6578616d706c652e636f6d0050"],
  ["8.8.8.8", 53, "01080808080035"],
  ["2001:db8::1", 443, "0420010db800000000000000000000000101bb"],
] as const;

for (const [host, port, hex] of SAMPLES) {
  test(`socks address ${host}: both ways, and every truncation waits`, () => {
    const bytes = encodeSocksAddress(toDestination(host, port));
    assert.equal(bytes.toString("hex"), hex);
    assert.deepEqual(decodeSocksAddress(bytes), {
      destination: toDestination(host, port),
      next: bytes.length,
    });
    for (let size = 0; size < bytes.length; size++)
      assert.equal(decodeSocksAddress(bytes.subarray(0, size)), null);
  });
}

test("socks address: mapped IPv4, a literal in the name field, an offset", () => {
  const mapped = Buffer.from("0400000000000000000000ffff010203040050", "hex");
  assert.equal(decodeSocksAddress(mapped)?.destination.ip, "1.2.3.4");
  const literal = Buffer.from("ff0307312e322e332e340050", "hex");
  assert.deepEqual(decodeSocksAddress(literal, 1), {
    destination: { host: null, ip: "1.2.3.4" as Ip, port: 80 },
    next: literal.length,
  });
});

test("socks address: the source of a reply is an address where one is known", () => {
  const both = { host: "a.example", ip: "1.2.3.4" as Ip, port: 1 };
  assert.equal(encodeSocksAddress(both)[0], 3);
  assert.equal(encodeSocksAddress(both, "ip")[0], 1);
});

test("socks address: nonsense is refused", () => {
  for (const hex of ["00", "02", "0300", "0301200050", "03010a0050"])
    assert.throws(() => decodeSocksAddress(Buffer.from(hex, "hex")), ProtocolError);
  assert.throws(() => encodeSocksAddress(toDestination("a".repeat(256), 1)), DialError);
});

test("socks address: random bytes give an address, a wait or ProtocolError", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      try {
        const got = decodeSocksAddress(bytes);
        if (got !== null) assert.ok(got.next <= bytes.length);
      } catch (error) {
        assert.ok(error instanceof ProtocolError);
      }
    }),
  );
});
