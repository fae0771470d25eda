import assert from "node:assert/strict";
import { duplexPair } from "node:stream";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { SILENT } from "#core/log.ts";
import { movableClock } from "../../../test/support/movable-clock.ts";
import { MuxPool } from "./pool.ts";
import { Silence } from "./silence.ts";
import { SmuxSession } from "./smux.ts";
import * as smux from "./smux-frame.ts";

const LONG_MS = 5_000;

test("long is the silence behind an opening that nothing was heard after", () => {
  using clock = movableClock();
  const silence = new Silence();
  clock.move(LONG_MS);
  assert.ok(!silence.isLong, "nothing was asked");
  silence.asked();
  clock.move(LONG_MS / 2);
  silence.asked();
  assert.ok(!silence.isLong);
  clock.move(LONG_MS / 2);
  assert.ok(silence.isLong, "a later opening does not begin it anew");
  silence.unused();
  assert.ok(silence.isLong, "the last stream was given up, and that was late");
  silence.heard();
  assert.ok(!silence.isLong);
  silence.asked();
  silence.unused();
  clock.move(LONG_MS);
  assert.ok(!silence.isLong, "one that was given up soon says nothing");
});

test("what is new goes by another connection than one whose server has fallen silent", async () => {
  using clock = movableClock();
  const servers: ReturnType<typeof duplexPair>[0][] = [];
  await using pool = new MuxPool({
    maxConnections: 1,
    minStreams: 0,
    maxStreams: 0,
    dial: async () => {
      const [near, far] = duplexPair();
      servers.push(far);
      return near;
    },
    start: (wire, onClosed) => new SmuxSession(wire, { onStream: null, onClosed, log: SILENT }),
  });
  const context = { signal: new AbortController().signal, metadata: null };
  const open = async () => {
    const stream = await pool.open(context, (session) => session.open());
    stream.on("error", () => {}).write("is anybody there?");
    return stream;
  };
  await open();
  await open();
  assert.equal(servers.length, 1);
  clock.move(LONG_MS);
  const later = await open();
  assert.equal(servers.length, 2);
  later.destroy();
  servers[0]?.write(smux.encodeKeepAlive());
  for (let round = 0; round < 5; round++) await turn();
  clock.move(LONG_MS);
  await open();
  await open();
  assert.equal(servers.length, 2, "both are used while they answer, or are asked nothing");
});
