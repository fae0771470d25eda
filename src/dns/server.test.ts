import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { SILENT } from "#core/log.ts";
import { frameOf } from "./frames.ts";
import { serveDnsStream } from "./server.ts";

/** A client that sends questions and takes no answer until it is told to. */
class UnreadStream extends Duplex {
  /** Takes the one answer that has arrived. */
  takeOne: () => void = () => {};

  override _read(): void {}

  override _write(_: Buffer, __: string, done: () => void): void {
    this.takeOne = done;
  }
}

async function served(answerBytes: number) {
  let asked = 0;
  const client = new UnreadStream();
  const handle = async () => (asked++, Buffer.alloc(answerBytes));
  serveDnsStream(client, handle, SILENT);
  for (let at = 0; at < 1000; at++) client.push(frameOf(Buffer.alloc(20)));
  const settle = async () => {
    for (let turn = 0; turn < 20; turn++) await nextTurn();
    return asked;
  };
  await settle();
  return { client, settle };
}

test("a TCP client that takes no answers is asked for no more questions", async () => {
  const { client, settle } = await served(100);
  assert.equal(await settle(), 64);
  client.takeOne();
  assert.equal(await settle(), 65);
  assert.equal(client.destroyed, false);
  client.destroy();
});

test("a TCP client whose answers would fill the memory is cut off", async () => {
  const { client } = await served(60_000);
  assert.equal(client.destroyed, true);
  assert.ok(client.writableLength < 400_000, `${client.writableLength} bytes wait`);
});
