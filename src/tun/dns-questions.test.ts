import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { DnsQuestions } from "./dns-questions.ts";
import { memoryTun } from "../../test/support/packets.ts";
import type { Packet } from "./packet.ts";
import { PacketWriter } from "./packet-writer.ts";

const from = (last: number): Packet =>
  ({
    bytes: Uint8Array.of(192, 0, 2, last, 198, 51, 100, 1),
    sourceAt: 0,
    destinationAt: 4,
    addressBytes: 4,
    sourcePort: 5000,
    destinationPort: 53,
  }) as Packet;

test("a client with thousands of slow questions leaves room for others, and for itself once they are answered", async () => {
  const asked: ((answer: Uint8Array) => void)[] = [];
  const told: string[] = [];
  const answer = () => new Promise<Uint8Array>((resolve) => asked.push(resolve));
  const writer = {
    udpRoom: () => 2048,
    udp: (...[, , client]: [unknown, unknown, Uint8Array]) => void told.push(client.join(".")),
  };
  const env = { dns: () => ({ answer }), log: SILENT };
  const questions = new DnsQuestions(env as never, writer as unknown as PacketWriter);
  const question = Buffer.from("a question");
  for (let count = 0; count < 3000; count++) assert.equal(questions.ask(question, from(1)), true);
  assert.equal(asked.length, 1024);
  questions.ask(question, from(2));
  assert.equal(asked.length, 1025);
  for (const done of asked) done(Buffer.from("an answer"));
  await new Promise(setImmediate);
  assert.deepEqual([told.length, told.at(-1)], [1025, "192.0.2.2"]);
  questions.ask(question, from(1));
  assert.equal(asked.length, 1026);
});

test("an answer is cut to what a packet to its client holds: in IPv6 nobody cuts it into fragments", async () => {
  for (const addressBytes of [4, 16]) {
    const device = memoryTun(true, false);
    const answer = async (_: Uint8Array, mostBytes = 2048) => Buffer.alloc(Math.min(2048, mostBytes));
    const questions = new DnsQuestions(
      { dns: () => ({ answer }) as never, log: SILENT },
      new PacketWriter(device, 1500),
    );
    const bytes = new Uint8Array(2 * addressBytes);
    const packet = { bytes, sourceAt: 0, destinationAt: addressBytes, addressBytes, sourcePort: 5000 };
    questions.ask(Buffer.from("a question"), { ...packet, destinationPort: 53 } as Packet);
    await new Promise(setImmediate);
    assert.equal(device.written.length, addressBytes === 4 ? 2 : 1);
    assert.ok(device.written.every(({ length }) => length <= 10 + 1500));
  }
});
