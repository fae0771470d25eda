import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT } from "#core/log.ts";
import { DnsQuestions } from "./dns-questions.ts";
import { until } from "../../test/support/until.ts";
import { memoryTun } from "../../test/support/packets.ts";
import type { Packet } from "#net/packet/packet.ts";
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

/** Questions that are answered when the test says so, and who got an answer. */
function slowQuestions() {
  const asked: ((answer: Uint8Array) => void)[] = [];
  const told: string[] = [];
  let settled = 0;
  const answer = () => new Promise<Uint8Array>((resolve) => asked.push(resolve));
  const writer = {
    udpRoom: () => 2048,
    udp: (...[, , client]: [unknown, unknown, Uint8Array]) => void told.push(client.join(".")),
  };
  const env = { dns: () => ({ answer }), log: SILENT, onDnsSettled: () => settled++ };
  const questions = new DnsQuestions(env as never, writer as unknown as PacketWriter);
  return { questions, asked, told, settled: () => settled };
}

const QUESTION = Buffer.from("a question");

test("a client with thousands of slow questions leaves room for others, and for itself once they are answered", async () => {
  const { questions, asked, told } = slowQuestions();
  for (let count = 0; count < 3000; count++) assert.equal(questions.ask(QUESTION, from(1)), true);
  questions.ask(QUESTION, from(2));
  await until("all that may are begun", () => asked.length === 1025);
  for (const done of asked) done(Buffer.from("an answer"));
  await new Promise(setImmediate);
  assert.deepEqual([told.length, told.includes("192.0.2.2")], [1025, true]);
  questions.ask(QUESTION, from(1));
  await until("there is room again", () => asked.length === 1026);
});

test("a flood is begun in portions, and once it has been answered its memory can be given back", async () => {
  const { questions, asked, told, settled } = slowQuestions();
  for (let client = 1; client <= 4; client++)
    for (let count = 0; count < 1024; count++) questions.ask(QUESTION, from(client));
  assert.equal(asked.length, 8, "of one turn of the event loop");
  questions.ask(QUESTION, from(9));
  await new Promise(setImmediate);
  asked[8]?.(Buffer.from("an answer"));
  await until("who asks little is answered first", () => told.length === 1);
  assert.equal(told[0], "192.0.2.9");
  await until("all are answered", () => {
    for (const done of asked.splice(0)) done(Buffer.from("an answer"));
    return settled() === 1;
  });
  assert.ok(told.length > 2048);
});

test("an answer is cut to what a packet to its client holds: IPv6 routers cut nothing into fragments", async () => {
  for (const addressBytes of [4, 16]) {
    const device = memoryTun(true, false);
    const answer = async (_: Uint8Array, mostBytes = 2048) => Buffer.alloc(Math.min(2048, mostBytes));
    const questions = new DnsQuestions(
      { dns: () => ({ answer }) as never, log: SILENT, onDnsSettled: () => {} },
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
