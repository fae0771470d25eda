/** How a connection goes on without one of its sides, between wires of memory. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EAGAIN, EPIPE, FAULT, PEER_ENDED, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import { FAILED, type TaskIo, OVER, WAITS } from "./task.ts";
import { CLIENT } from "#dataplane/workers/shared/sides.ts";
import { RelayTask } from "./relay-task.ts";
import type { Wire } from "#dataplane/workers/wire/wire.ts";
import { Readiness } from "#dataplane/workers/wire/readiness.ts";

const REMOTE = 1;
const CLIENT_FD = 10;
const REMOTE_FD = 11;
const ECONNRESET = -104;

/** Its sizes stand for bytes. */
class Memory extends Readiness implements Wire {
  readonly pending = false;
  readonly fd: number;
  /** What reading comes to, one after the other: sizes, 0 or errnos; then nothing is there. */
  readonly reads: number[] = [];
  /** What a write comes to that fails. */
  refuses = 0;
  taken = 0;
  isTold = false;

  constructor(fd: number) {
    super();
    this.fd = fd;
  }

  read(): number {
    const bytes = this.reads.shift() ?? EAGAIN;
    if (bytes === EAGAIN) this.readable = false;
    return bytes;
  }

  write(_io: TaskIo, size: number): number {
    if (this.refuses !== 0) return this.refuses;
    if (!this.writable) return EAGAIN;
    this.taken += size;
    return size;
  }

  available = (): number => 1;
  flush = (): number => 0;
  endWriting = (): number => ((this.isTold = true), 0);
  drop(): void {}
}

/** `receive`: what is still in a socket behind both ends. */
function setUp(errno = 0, unsent: () => number = () => 0, receive: (fd: number) => number = () => 0) {
  const [client, remote] = [new Memory(CLIENT_FD), new Memory(REMOTE_FD)];
  const connection = new RelayTask(client, remote, 0);
  const calls = { buffer: new Uint8Array(100), takeError: () => errno, unsent, receive };
  const io = { calls, counts: new Float64Array(2), bufferedBytes: 0 } as unknown as TaskIo;
  const run = (): number => {
    for (let turns = 0; turns < 10; turns++) {
      const outcome = connection.run(io);
      if (outcome === WAITS || outcome === OVER || outcome === FAILED) return outcome;
    }
    assert.fail("it does not come to rest");
  };
  return { client, remote, connection, run };
}

test("what a client said before its end goes on to a slow origin, though the client is gone", () => {
  const { client, remote, connection, run } = setUp(EPIPE);
  client.reads.push(50, 50, 0);
  remote.writable = false;
  connection.onEvents(CLIENT, READABLE | PEER_ENDED | FAULT);
  assert.equal(run(), WAITS);
  connection.onEvents(REMOTE, WRITABLE);
  assert.equal(run(), OVER);
  assert.deepEqual([remote.taken, remote.isTold], [100, true]);
});

test("a reset without an end ends both sides at once", () => {
  const { client, remote, connection, run } = setUp(ECONNRESET);
  client.reads.push(50, ECONNRESET);
  remote.writable = false;
  connection.onEvents(CLIENT, READABLE | FAULT);
  assert.equal(run(), FAILED);
});

test("a write shows, too, that the peer is gone, and bytes for it are thrown away", () => {
  let unsent = 1;
  const { client, remote, connection, run } = setUp(0, () => unsent);
  remote.reads.push(10);
  client.refuses = EPIPE;
  connection.onEvents(REMOTE, READABLE);
  client.reads.push(50, 0);
  assert.equal(run(), WAITS);
  assert.deepEqual([remote.taken, remote.isTold], [50, true]);
  remote.reads.push(10, 10);
  connection.onEvents(REMOTE, READABLE);
  assert.equal(run(), WAITS); // the origin has not got all
  unsent = 0;
  connection.onEvents(REMOTE, WRITABLE);
  assert.equal(run(), OVER);
  assert.equal(remote.reads.length, 0);
});

test("a reset on writing to a client that has not ended is a fault", () => {
  const { client, remote, connection, run } = setUp();
  remote.reads.push(10);
  client.refuses = ECONNRESET;
  client.reads.push(50);
  connection.onEvents(REMOTE, READABLE);
  assert.equal(run(), FAILED);
  assert.equal(remote.taken, 50);
});

test("a socket whose peer has not ended is closed once all has arrived there, and nothing is left unread", () => {
  let unsent = 1;
  const trailing = [5, EAGAIN, EAGAIN, 8, EAGAIN];
  const receive = (fd: number): number => (fd === CLIENT_FD ? 0 : (trailing.shift() as number));
  const { client, remote, connection, run } = setUp(0, () => unsent, receive);
  client.reads.push(50, 0);
  remote.reads.push(0);
  connection.onEvents(CLIENT, READABLE);
  connection.onEvents(REMOTE, READABLE);
  assert.equal(run(), WAITS);
  assert.equal(connection.onEvents(REMOTE, WRITABLE), true);
  assert.equal(run(), WAITS);
  unsent = 0;
  assert.equal(connection.onEvents(REMOTE, WRITABLE), true);
  assert.equal(run(), OVER);
  assert.deepEqual([remote.taken, trailing], [50, []]);
});
