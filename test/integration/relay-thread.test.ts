/** One worker and the main thread's end of it: what becomes of descriptors, ciphers and events when something fails. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { descriptorOf } from "#core/handover.ts";
import type { WorkerConnection } from "#core/accepted.ts";
import { AcceptDispatcher } from "#dataplane/workers/main/accept-dispatcher.ts";
import { makeFree } from "#dataplane/workers/main/orphans.ts";
import { PLAIN, SEALED, type HandedWire } from "#dataplane/workers/shared/wire-spec.ts";
import { WorkerHandle, type WorkerHandleOptions } from "#dataplane/workers/main/worker-handle.ts";
import type { WorkerTaskOwner } from "#dataplane/workers/main/task-owner.ts";
import { VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import { RESET } from "#dataplane/workers/shared/opcodes.ts";
import { keepAead } from "#platform/aead.ts";
import { openRelayCalls, type RelayCalls } from "#platform/linux/relay-calls.ts";
import { tlsLibrary } from "../support/tls.ts";
import { byWorkers } from "../support/accepted.ts";
import { openPoller, type Poller } from "#platform/linux/uv-poll.ts";

const calls = openRelayCalls() as RelayCalls;
const skip = calls === null ? "SKIP worker: needs Linux and node:ffi" : false;

const options = (rest: Partial<WorkerHandleOptions> = {}): WorkerHandleOptions => ({
  calls,
  poller: openPoller() as Poller,
  pipes: 0,
  unauthenticated: { count: 1024, bytes: 1 << 24 },
  threads: 1,
  version: new VersionWord().memory,
  decidedClient: () => assert.fail("nothing is decided"),
  free: () => {},
  onArrived: () => {},
  onServed: () => {},
  onUnlistened: () => {},
  onDeath: () => {},
  ...rest,
});

/** The thread's worker, too. */
async function openThread(rest: Partial<WorkerHandleOptions> = {}): Promise<[WorkerHandle, Worker]> {
  const made = once(process, "worker") as Promise<[Worker]>;
  const thread = await WorkerHandle.open(options(rest));
  return [thread, (await made)[0]];
}

interface Pair {
  readonly far: Socket;
  /** Of the near end, for a thread. */
  readonly fd: number;
}

/** Two ends of a connection, of which the near one is a descriptor. */
async function openPair(): Promise<Pair> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const far = connect(port, "127.0.0.1").on("error", () => {});
  const [near] = (await once(server, "connection")) as [Socket];
  const fd = calls.duplicate(descriptorOf(near));
  near.destroy();
  server.close();
  return { far, fd };
}

const plain = (fd: number): HandedWire => ({ kind: PLAIN, fd, numbers: [], unread: null });

/** With contexts of its own. */
function sealed(fd: number): HandedWire {
  const context = (direction: "sealing" | "opening"): number => {
    const aead = keepAead("aes-128-gcm", Buffer.alloc(16));
    assert.ok(aead?.giveAway !== undefined);
    const out = Buffer.alloc(16);
    if (direction === "sealing") aead.sealInto(out, 0, Buffer.alloc(12), Buffer.alloc(0));
    else aead.openInto(Buffer.alloc(0), 0, Buffer.alloc(12), out);
    return Number(aead.giveAway(direction));
  };
  return {
    kind: SEALED,
    fd,
    numbers: [context("opening"), context("sealing"), 0, 0, 0x3fff, -1, 0],
    unread: null,
  };
}

const ownedBy = (onEnded: () => void): WorkerTaskOwner => ({ onGrantRequest() {}, onEnded });

test(
  "a connection that ends while the thread stops does not let the process end before it",
  { skip },
  async (context) => {
    const [thread, worker] = await openThread();
    thread.holdProcess(1);
    const { mock } = context.mock.method(worker, "unref");
    const stopped = thread[Symbol.asyncDispose]();
    thread.holdProcess(-1);
    assert.equal(mock.callCount(), 0);
    await stopped;
  },
);

test(
  "what wires hold is freed once, by their worker or, if it has died, by the main thread",
  { skip },
  async () => {
    const freed: { kind: number; words: Float64Array }[] = [];
    const { promise: died, resolve: die } = Promise.withResolvers<void>();
    const freeLeft = makeFree(tlsLibrary);
    const free: WorkerHandleOptions["free"] = (kind, words) => {
      freed.push({ kind, words: words.slice(0, 2) });
      freeLeft(kind, words);
    };
    const [thread, worker] = await openThread({ free, onDeath: () => die() });
    await using _thread = thread;
    const pairs = [await openPair(), await openPair(), await openPair(), await openPair()] as const;
    const [one, oneBack, other, otherBack] = pairs;
    const { promise: ended, resolve: end } = Promise.withResolvers<void>();
    const slot = thread.add(sealed(one.fd), plain(oneBack.fd), false, ownedBy(end));
    thread.command(slot, RESET);
    await ended;
    assert.deepEqual(freed, [], "the thread has done it");
    const left = sealed(other.fd);
    let isOver = false;
    thread.add(
      left,
      plain(otherBack.fd),
      false,
      ownedBy(() => (isOver = true)),
    );
    otherBack.far.write("something");
    await once(other.far, "data"); // it has the connection now
    void worker.terminate(); // noticed when it wakes up
    otherBack.far.write("more");
    await died;
    assert.equal(isOver, true);
    assert.deepEqual(freed, [{ kind: SEALED, words: Float64Array.from(left.numbers.slice(0, 2)) }]);
    for (const { far } of pairs) far.destroy();
  },
);

/** Descriptors of this process, which are those of its threads. */
function open(kind: RegExp): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const of = readlinkSync(`/proc/self/fd/${fd}`);
      return kind.test(of) ? of : [];
    } catch {
      return []; // that of the folder itself
    }
  });
}

test("a thread that dies leaves no pipe, with bytes in it or without", { skip }, async () => {
  const { promise: died, resolve: die } = Promise.withResolvers<void>();
  const before = open(/^pipe:/).toSorted();
  const [thread, worker] = await openThread({ pipes: 4, onDeath: () => die() });
  await using _thread = thread;
  const [one, back] = [await openPair(), await openPair()];
  thread.add(
    plain(one.fd),
    plain(back.fd),
    false,
    ownedBy(() => {}),
  );
  back.far.pause();
  const bulk = Buffer.alloc(1 << 20);
  while (open(/^pipe:/).length === before.length) {
    one.far.write(bulk); // the peer does not read: the rest stays in the pipe
    await nextTurn();
  }
  void worker.terminate(); // noticed when it wakes up
  one.far.write(bulk);
  await died;
  assert.deepEqual(open(/^pipe:/).toSorted(), before);
  for (const { far } of [one, back]) far.destroy();
});

test("a thread that does not start leaves nothing open", { skip }, async () => {
  const signals = (): number => open(/^anon_inode:\[eventfd\]$/).length;
  const before = signals();
  process.once("worker", (worker: Worker) => void worker.terminate());
  await assert.rejects(WorkerHandle.open(options()), /does not start/);
  assert.equal(signals(), before);
});

/** The uncaught faults while `work` runs, at least one; the test runner, which would fail for them, does not see them. */
async function uncaught(work: () => Promise<unknown>): Promise<unknown[]> {
  const faults: unknown[] = [];
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (fault) => void faults.push(fault));
  await work();
  while (faults.length === 0) await nextTurn();
  process.removeAllListeners("uncaughtException");
  for (const one of others) process.on("uncaughtException", one);
  return faults;
}

test("a fault of ours at the end of one connection costs no other its end", { skip }, async () => {
  const [thread] = await openThread();
  await using _thread = thread;
  const pairs = [await openPair(), await openPair(), await openPair(), await openPair()] as const;
  const [one, oneBack, other, otherBack] = pairs;
  const fault = new Error("a fault of ours");
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const faults = await uncaught(async () => {
    const first = thread.add(
      plain(one.fd),
      plain(oneBack.fd),
      false,
      ownedBy(() => assert.fail(fault)),
    );
    const second = thread.add(plain(other.fd), plain(otherBack.fd), false, ownedBy(end));
    for (const slot of [first, second]) thread.command(slot, RESET); // one batch of events has both ends
    await ended;
  });
  assert.deepEqual(faults, [fault]);
  assert.equal(thread.size, 0);
  for (const { far } of pairs) far.destroy();
});

test("a slot gets no new connection before its end has been handled", { skip }, async () => {
  const [thread] = await openThread();
  await using _thread = thread;
  const pairs = [await openPair(), await openPair(), await openPair(), await openPair()] as const;
  const [one, oneBack, next, nextBack] = pairs;
  const { promise: given, resolve } = Promise.withResolvers<number>();
  const slot = thread.add(
    plain(one.fd),
    plain(oneBack.fd),
    false,
    ownedBy(() =>
      resolve(
        thread.add(
          plain(next.fd),
          plain(nextBack.fd),
          false,
          ownedBy(() => {}),
        ),
      ),
    ),
  );
  thread.command(slot, RESET);
  assert.notEqual(await given, slot); // its counts and descriptors were still to be read
  for (const { far } of pairs) far.destroy();
});

/** The thread of one listener whose clients need not say anything; `on` gets them. */
async function openFront(
  on: (client: WorkerConnection) => void,
): Promise<AsyncDisposable & { port: number; thread: WorkerHandle }> {
  await using undo = new AsyncDisposableStack();
  let threads: readonly WorkerHandle[] = [];
  const fronts = AcceptDispatcher.open(tlsLibrary, {
    threads: () => threads,
    beforeListen() {},
    beforeCapture() {},
  }) as AcceptDispatcher;
  const [thread] = await openThread({
    onArrived: (from, slot, kind) => fronts.onEvent(from, slot, kind),
    onUnlistened: (from, listener) => fronts.onListenerClosed(from, listener),
  });
  undo.use(thread);
  threads = [thread];
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const fd = fronts.duplicate(descriptorOf(server));
  server.close();
  const onSocket = (socket: Socket): void => void socket.destroy();
  const listening = fronts.listen(fd, { ...byWorkers(on), onSocket });
  undo.defer(async () => {
    await listening?.stop(false);
    fronts.close(fd);
  });
  const opened = undo.move();
  return { port, thread, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

test(
  "a client that is reset cannot be dialled for or taken any more, and its slot is free again",
  { skip },
  async () => {
    const taken: Duplex[] = [];
    await using front = await openFront((client) => {
      client.reset();
      taken.push(client.stream());
    });
    for (let count = 0; count < 20; count++) {
      const client = connect(front.port, "127.0.0.1");
      await once(client, "error");
    }
    assert.equal(taken.filter(({ destroyed }) => destroyed).length, 20);
    assert.ok(front.thread.table.acceptedSlots < 20, `${front.thread.table.acceptedSlots} slots`);
  },
);

test("a fault of ours in one connection of a thread costs no other anything", { skip }, async () => {
  const [thread] = await openThread();
  await using _thread = thread;
  const pairs = [await openPair(), await openPair(), await openPair(), await openPair()] as const;
  const [one, oneBack, other, otherBack] = pairs;
  thread.add(
    plain(other.fd),
    plain(otherBack.fd),
    false,
    ownedBy(() => {}),
  );
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const faults = await uncaught(async () => {
    const tooLong = { ...sealed(one.fd), unread: Buffer.alloc(4 << 20) };
    thread.add(tooLong, plain(oneBack.fd), false, ownedBy(end));
    await ended;
  });
  assert.ok(faults[0] instanceof RangeError);
  other.far.write("still there");
  assert.equal(String(((await once(otherBack.far, "data")) as [Buffer])[0]), "still there");
  for (const { far } of pairs) far.destroy();
});
