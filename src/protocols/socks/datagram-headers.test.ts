import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Destination, Ip } from "#core/session.ts";
import { DatagramHeaders } from "./datagram-headers.ts";
import { decodeDatagram, encodeDatagramHeader } from "./wire.ts";

const places: readonly Destination[] = [
  { host: null, ip: "192.0.2.1" as Ip, port: 53 },
  { host: null, ip: "192.0.2.1" as Ip, port: 54 },
  { host: null, ip: "2001:db8::1" as Ip, port: 53 },
  { host: "a.example", ip: null, port: 443 },
  { host: "a.example.org", ip: null, port: 443 },
];

test("any sequence of datagrams reads as each would alone, cut and fragments included", () => {
  const datagram = fc
    .record({
      context: fc.constantFrom(...places),
      payload: fc.uint8Array({ maxLength: 20 }),
      cut: fc.option(fc.nat({ max: 40 }), { freq: 4, nil: Infinity }),
      fragment: fc.constantFrom(0, 0, 0, 1, 0x80),
    })
    .map(({ context, payload, cut, fragment }) => {
      const bytes = Buffer.concat([encodeDatagramHeader(context, "host"), payload]);
      bytes[2] = fragment;
      return bytes.subarray(0, cut);
    });
  fc.assert(
    fc.property(fc.array(fc.oneof(datagram, fc.uint8Array({ maxLength: 30 })), { maxLength: 30 }), (all) => {
      const headers = new DatagramHeaders("ip");
      for (const bytes of all) assert.deepEqual(headers.decode(bytes), decodeDatagram(bytes));
    }),
  );
});

test("a header is the object of the datagram before, and right for another destination", () => {
  const headers = new DatagramHeaders("ip");
  for (const context of [...places, ...places])
    for (let time = 0; time < 2; time++)
      assert.deepEqual(headers.encode(context), encodeDatagramHeader(context, "ip"));
  const [first] = places as [Destination];
  assert.equal(headers.encode(first), headers.encode(first));
  const bytes = Buffer.concat([headers.encode(first), Buffer.from("payload")]);
  assert.equal(headers.decode(bytes)?.destination, headers.decode(Buffer.from(bytes))?.destination);
});
