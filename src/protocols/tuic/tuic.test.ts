import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Datagram } from "#core/session.ts";
import { toDestination } from "#net/address/ip.ts";
import { newAssociations } from "./associations.ts";
import { inboundSchema } from "./inbound-options.ts";
import { links, singBox } from "./links.ts";
import { outboundSchema } from "./options.ts";
import {
  decodePacket,
  encodeAuthenticate,
  encodeConnect,
  encodeDissociate,
  encodePacket,
  HEARTBEAT,
} from "./wire.ts";

const hexOf = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString("hex");
const PART = { association: 1, packet: 7, fragments: 1, fragment: 0, data: Buffer.from("abc") };
const TO = toDestination("8.8.8.8", 53);

describe("commands", () => {
  test("bytes", () => {
    const connect = encodeConnect(toDestination("example.com", 443));
    assert.equal(hexOf(connect), "0501000b6578616d706c652e636f6d01bb");
    const packet = encodePacket({ ...PART, address: TO });
    assert.equal(hexOf(packet), "050200010007010000030108080808" + "0035616263");
    const second = { ...PART, packet: 8, fragments: 2, fragment: 1, address: null, data: Buffer.from("def") };
    assert.equal(hexOf(encodePacket(second)), "05020001000802010003ff646566");
    assert.equal(hexOf(encodeDissociate(1)), "05030001");
    assert.equal(hexOf(HEARTBEAT), "0504");
    assert.equal(hexOf(encodeAuthenticate(Buffer.alloc(16, 1), Buffer.alloc(32, 2))).length, 100);
    const six = encodeConnect(toDestination("2001:db8::1", 1));
    assert.equal(hexOf(six), "05010220010db80000000000000000000000010001");
    assert.throws(() => encodeConnect({ host: "a".repeat(256), ip: null, port: 1 }), DialError);
  });

  test("packets, every truncation of them, and random bytes", () => {
    const packets = [
      { ...PART, address: TO },
      { ...PART, address: toDestination("a.example", 1) },
      { ...PART, address: toDestination("2001:db8::1", 1) },
      { ...PART, fragments: 2, fragment: 1, address: null },
    ];
    for (const packet of packets) {
      const encoded = encodePacket(packet);
      const decoded = decodePacket(encoded);
      assert.deepEqual({ ...decoded, data: Buffer.from(decoded?.data ?? []) }, packet);
      for (let size = 0; size < encoded.length; size++)
        assert.throws(() => decodePacket(encoded.subarray(0, size)), ProtocolError);
    }
    assert.equal(decodePacket(HEARTBEAT), null);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          decodePacket(Buffer.concat([Buffer.of(5, 2), bytes]));
        } catch (error) {
          assert.ok(error instanceof ProtocolError);
        }
      }),
    );
  });
});

test("flows: fragments in any order, numbers of their own, and an end that is told", async () => {
  const sent: Uint8Array[] = [];
  const ended: number[] = [];
  const associations = newAssociations({
    mostBytes: 300,
    send: (packet) => void sent.push(packet),
    dissociate: (association) => void ended.push(association),
    ended() {},
  });
  const [first, second] = [associations.open(), associations.open()];
  const payload = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 251));
  first.send({ payload, destination: TO });
  assert.equal(sent.length, 4);
  assert.ok(sent.every(({ length }) => length <= 300));
  const came: Datagram[] = [];
  first.receive(
    ({ payload: bytes, destination }) => void came.push({ payload: Buffer.from(bytes), destination }),
  );
  second.receive(() => assert.fail("it is another's"));
  for (const packet of sent.toReversed()) associations.take(packet);
  associations.take(encodePacket({ ...PART, association: 99, address: TO }));
  associations.take(encodePacket({ ...PART, association: 0, fragments: 2, fragment: 1, address: null }));
  associations.take(Buffer.from("0502", "hex"));
  assert.deepEqual(came, [{ payload, destination: TO }]);
  await second[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  assert.deepEqual(ended, [1]);
  associations.close();
  await first.closed;
  await first[Symbol.asyncDispose]();
  assert.deepEqual([ended, associations.isEmpty], [[1], true]);
});

describe("keys", () => {
  const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
  const node = { server: "a.example", port: 443, uuid, password: "p" };
  const why = (more: object) =>
    outboundSchema.safeParse({ ...node, ...more }).error?.issues.map(({ message }) => message) ?? [];

  test("what is missing or belongs to version 4 says what would be right", () => {
    assert.deepEqual(why({}), []);
    assert.match(
      why({ uuid: undefined, password: undefined, token: "t" }).join(),
      /version 4.*UUID.*is empty/,
    );
    assert.match(why({ "udp-relay-mode": "x" }).join(), /native/);
    assert.match(why({ "congestion-controller": "x" }).join(), /cubic/);
    assert.match(why({ ip: "a.example" }).join(), /expected an address/);
  });

  test("a listener with ech-key is left out, not opened without it", () => {
    const { error } = inboundSchema.safeParse({ users: { [uuid]: "p" }, certificate: "c", "ech-key": "k" });
    assert.match(error?.issues[0]?.message ?? "", /not available over QUIC/);
  });

  test("links and sing-box", () => {
    const full = {
      name: "n",
      type: "tuic",
      ...node,
      "skip-cert-verify": true,
      "disable-sni": true,
      "udp-relay-mode": "quic",
    };
    assert.match(
      links.write(full),
      /^tuic:\/\/b831381d-[^:]+:p@a\.example:443\?udp_relay_mode=quic&disable_sni=1&allow_insecure=1#n$/,
    );
    assert.deepEqual(singBox(full), {
      type: "tuic",
      tag: "n",
      server: "a.example",
      server_port: 443,
      uuid,
      password: "p",
      udp_relay_mode: "quic",
      tls: { enabled: true, alpn: ["h3"], disable_sni: true, insecure: true },
    });
  });
});
