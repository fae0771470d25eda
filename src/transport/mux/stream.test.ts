import assert from "node:assert/strict";
import { test } from "node:test";
import { PatientStream } from "./stream.ts";

const OWNER = { sendData() {}, sendEnd() {}, taken() {}, holds() {}, gone() {} };

test("an end waits for a peer's silence, which is none while its reader is slow", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const stream = new PatientStream(OWNER, 1);
  let ends = 0;
  stream.arrive(Buffer.alloc(300_000));
  stream.waitForSilence(() => ends++);
  t.mock.timers.tick(10_000);
  assert.equal(ends, 0, "something is still to be read");
  let size = 0;
  for (let data = stream.read() as Buffer | null; data !== null; data = stream.read() as Buffer | null)
    size += data.length;
  assert.equal(size, 300_000);
  t.mock.timers.tick(1_000);
  assert.equal(ends, 1);
  stream.destroy();
});
