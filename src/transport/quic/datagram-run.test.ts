import assert from "node:assert/strict";
import { test } from "node:test";
import { DatagramRun, type SendDatagrams } from "./datagram-run.ts";
import { Path } from "./path.ts";

/** Builds datagrams of these sizes, each filled with its number; answers with what was sent, by its calls. */
function build(sizes: readonly number[], takesRuns: boolean): string[] {
  const sent: string[] = [];
  const cut = (bytes: Uint8Array, size: number): string => {
    const parts: string[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      const part = bytes.subarray(at, at + size);
      assert.ok(part.every((byte) => byte === part[0]));
      parts.push(`${part[0]}:${part.length}`);
    }
    return parts.join(" ");
  };
  const path = new Path(null, true);
  const to: SendDatagrams = {
    send: (datagram) => void sent.push(cut(datagram, datagram.length)),
    ...(takesRuns
      ? { sendRun: (datagrams: Uint8Array, size: number) => void sent.push(cut(datagrams, size)) }
      : {}),
  };
  const run = new DatagramRun(to, path);
  const memory = new Uint8Array(8192);
  run.begin(memory, path);
  for (const [index, size] of sizes.entries()) {
    const at = run.room(2048);
    memory.fill(index, at, at + size);
    run.add(size);
  }
  run.send();
  run.send();
  return sent;
}

test("datagrams of one size go together, a shorter one ends a run, a longer one begins the next", () => {
  assert.deepEqual(build([], true), []);
  assert.deepEqual(build([1200], true), ["0:1200"]);
  assert.deepEqual(build([1200, 1200, 300, 1200], true), ["0:1200 1:1200 2:300", "3:1200"]);
  assert.deepEqual(build([100, 1452, 1452], true), ["0:100", "1:1452 2:1452"]);
  assert.deepEqual(build([100, 200, 300], true), ["0:100", "1:200", "2:300"]);
});

test("memory that is full is emptied, and where runs are not taken each datagram goes alone", () => {
  assert.deepEqual(build([2000, 2000, 2000, 2000, 2000], true), ["0:2000 1:2000 2:2000 3:2000", "4:2000"]);
  assert.deepEqual(build([500, 500, 700], false), ["0:500", "1:500", "2:700"]);
  assert.equal(
    build(
      Array.from({ length: 40 }, () => 20),
      true,
    ).length,
    2,
  );
});
