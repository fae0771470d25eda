/** What the stack survives and drops: damage, packets that no client may send, and more sessions than it keeps. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { echo, FAMILIES, memoryStack, SYN, tcp, udp } from "../support/memory-stack.ts";
import { ipPacket, readPacket, udpDatagram } from "../support/packets.ts";

for (const family of [4, 6] as const) {
  const { client, far, next } = FAMILIES[family];

  test(`IPv${family}: every truncation and every damage is survived`, () => {
    const { send, device } = memoryStack();
    const good = [
      tcp(client, far, { sourcePort: 1, destinationPort: 2, flags: SYN, payload: Buffer.alloc(9) }),
      udp(client, far, 5000, 7000),
      udp(client, far, 5000, 53),
      echo(client, next),
    ];
    for (const packet of good)
      for (let length = 0; length < packet.length; length++) send(packet.subarray(0, length));
    const choice = fc.constantFrom(...good);
    const damage = fc.array(fc.tuple(fc.nat(80), fc.integer({ min: 0, max: 255 })), { maxLength: 6 });
    fc.assert(
      fc.property(
        choice,
        damage,
        fc.uint8Array({ minLength: 10, maxLength: 10 }),
        (packet, changes, header) => {
          const damaged = Buffer.from(packet);
          for (const [at, value] of changes) if (at < damaged.length) damaged[at] = value;
          send(damaged, Buffer.from(header));
          assert.ok(device.written.every(({ length }) => length <= 10 + 65_535));
        },
      ),
      { numRuns: 2000 },
    );
  });
}

test("random bytes are survived", () => {
  const { send, device } = memoryStack();
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }),
      fc.constantFrom(0x45, 0x60, 0x4f, 0x00),
      (bytes, first) => {
        const packet = Buffer.from(bytes);
        if (packet.length > 0) packet[0] = first;
        send(packet);
        assert.ok(device.written.length <= 1);
      },
    ),
    { numRuns: 3000 },
  );
});

test("fragments, multicast, link-local, loopback and mapped addresses are dropped", () => {
  const { send, opened } = memoryStack();
  const { client, far } = FAMILIES[4];
  const fragment = udp(client, far, 5000, 7000);
  fragment.writeUInt16BE(0x2000, 6);
  send(fragment);
  for (const to of ["224.0.0.251", "255.255.255.255", "169.254.1.1", "127.0.0.1", "0.0.0.0", "198.18.0.3"])
    assert.deepEqual(send(udp(client, to, 5000, 7000)), [], to);
  const six = FAMILIES[6].client;
  for (const to of ["ff02::fb", "fe80::1", "::1", "::", "::ffff:c633:6402"])
    assert.deepEqual(send(udp(six, to, 5000, 7000)), [], to);
  assert.deepEqual(send(udp("fe80::5", FAMILIES[6].far, 5000, 7000)), []);
  assert.equal(opened.length, 0);
});

test("extension headers are walked, a fragment header and an endless chain are not", () => {
  const { send, opened } = memoryStack();
  const { client, far } = FAMILIES[6];
  const wire = {
    source: client,
    destination: far,
    protocol: 17,
    transport: udpDatagram(5000, 7000, Buffer.from("x")),
  };
  const options = (next: number) => Buffer.from([next, 0, 1, 4, 0, 0, 0, 0]);
  send(ipPacket(wire, Buffer.concat([options(60), options(43), options(17)])));
  assert.equal(opened.length, 1);
  send(ipPacket(wire, options(44)));
  send(ipPacket(wire, Buffer.concat([...Array.from({ length: 9 }, () => options(60)), options(17)])));
  assert.equal(opened[0]!.got.length, 1);
});

const OF_MANY = (number: number) => `10.${(number >> 14) & 63}.${(number >> 7) & 127}.${(number & 127) + 1}`;

test("a session that ends makes room; at the bound a datagram is refused", () => {
  const { send, opened, device } = memoryStack();
  for (let number = 0; number < 16_384; number++) send(udp(OF_MANY(number), FAMILIES[4].far, 5000, 7000));
  assert.equal(opened.length, 16_384);
  const [refusal] = send(udp("10.99.0.1", FAMILIES[4].far, 5000, 7000));
  assert.equal(readPacket(refusal!).transport[0], 3);
  void opened[0]!.flow[Symbol.asyncDispose]();
  assert.deepEqual(send(udp("10.99.0.1", FAMILIES[4].far, 5000, 7000)), []);
  assert.equal(opened.length, 16_385);
  device.written.length = 0;
  opened[0]!.flow.send({ payload: Buffer.from("late"), destination: opened[0]!.destination });
  assert.deepEqual(device.written, []);
});

test("at the bound the session that was idle longest makes room, whichever way it last sent", () => {
  const { send, opened, device, stack, clock } = memoryStack();
  const { far } = FAMILIES[4];
  const letPass = (ms: number) => {
    clock.nowMs += ms;
    stack.tick();
  };
  const refused = (packets: readonly Buffer[]) => packets.length > 0;
  for (let number = 0; number < 16_384; number++) send(udp(OF_MANY(number), far, 5000, 7000));
  letPass(9_000);
  assert.ok(refused(send(udp("10.99.0.1", far, 5000, 7000))), "all have spoken lately");
  send(udp(OF_MANY(0), far, 5000, 7000));
  opened[1]!.flow.send({ payload: Buffer.from("reply"), destination: opened[1]!.destination });
  letPass(1_000);
  assert.ok(!refused(send(udp("10.99.0.1", far, 5000, 7000))));
  assert.equal(opened.length, 16_385);
  device.written.length = 0;
  for (const at of [0, 1, 2])
    opened[at]!.flow.send({ payload: Buffer.from("late"), destination: opened[at]!.destination });
  assert.equal(device.written.length, 2, "the third one gave way");
});
