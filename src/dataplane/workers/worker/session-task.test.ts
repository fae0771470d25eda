import assert from "node:assert/strict";
import { test } from "node:test";
import { BUFFER_BYTES, type RelayCalls } from "#platform/linux/relay-calls.ts";
import { parseScheme } from "#protocols/begin-wire.ts";
import { KeptMuxSession } from "#dataplane/workers/wire/kept-mux-session.ts";
import { KeptSession } from "#dataplane/workers/wire/kept-session.ts";
import { newMuxFraming } from "#dataplane/workers/wire/mux-framings.ts";
import { MemoryWire } from "../../../../test/support/memory-wire.ts";
import { MuxSessionTask } from "./mux-session-task.ts";
import { SessionTask } from "./session-task.ts";
import { MORE, type TaskIo } from "./task.ts";

/** What it reads takes long to take apart: one byte of padding, or of a preface, stands for as much as a peer likes. */
class SlowWire extends MemoryWire {
  reads = 0;

  override read(): number {
    this.reads++;
    for (const untilMs = performance.now() + 4; performance.now() < untilMs;);
    return 1;
  }
}

const calls = { buffer: new Uint8Array(BUFFER_BYTES + 64) } as unknown as RelayCalls;
const io = { calls, bufferedBytes: 0, wakeAtMs: Infinity } as TaskIo;
const host = { awaits: () => assert.fail(), hears() {}, onStream: () => true, wake() {}, wakeStream() {} };

for (const [what, open] of [
  ["padded frames", (wire: SlowWire) => new SessionTask(newSession(wire))],
  [
    "smux",
    (wire: SlowWire) => new MuxSessionTask(new KeptMuxSession(wire, newMuxFraming("smux"), 1000, host)),
  ],
] as const)
  test(`${what}: a session whose frames take long to take apart lets others have their turn`, () => {
    const wire = new SlowWire(Buffer.alloc(0));
    assert.equal(open(wire).run(io), MORE);
    assert.ok(wire.reads <= 8, `${wire.reads} reads in one turn`);
  });

function newSession(wire: SlowWire): KeptSession {
  return new KeptSession(wire, parseScheme(Buffer.from("stop=0")), host);
}
