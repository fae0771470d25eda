/** The acceptor of a worker without sockets: memory in place of the kernel. */
import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";
import { test } from "node:test";
import type { Ssl } from "#platform/linux/ssl.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { Acceptor } from "./acceptor.ts";
import type { Task, TaskIo } from "./task.ts";
import { type AcceptorHost } from "./pending-task.ts";
import { NO_MESSAGE } from "#dataplane/workers/shared/wire-spec.ts";
import { HANDSHAKES } from "#dataplane/workers/shared/handshakes.ts";
import { AcceptMemory, newAcceptMemory, OPEN } from "#dataplane/workers/shared/accept-memory.ts";
import { WIRE_NUMBERS } from "#dataplane/workers/shared/wire-spec.ts";
import {
  CAPACITY,
  FIRST_ACCEPTED_SLOT,
  newRelayMemory,
  RelayMemory,
} from "#dataplane/workers/shared/relay-memory.ts";
import { TLS_ACCEPTED } from "#dataplane/workers/shared/opcodes.ts";
import { HANDSHAKE_DONE, HANDSHAKE_LATE, STAGE_NUMBER } from "#dataplane/workers/shared/tls-stage.ts";
import { BrowserTlsTable } from "#dataplane/workers/wire/browser-tls.ts";
import { NodeTlsTable } from "#dataplane/workers/wire/node-tls.ts";

/** Accepted descriptors have numbers from 1 on; no client sends anything. */
function openAcceptor(handshake: (typeof HANDSHAKES)[number] = "mixed", ssl: Ssl | null = null) {
  let descriptors = 0;
  const slots: number[] = [];
  const tasks: Task[] = [];
  const closed: number[] = [];
  const reports: [slot: number, kind: number][] = [];
  const calls = {
    address: new Uint8Array(28),
    watchListener: () => 0,
    accept: () => ++descriptors,
    localName: () => -1,
    discard: (fd: number) => void closed.push(fd),
    unwatch() {},
    receive: () => 0,
    close: (fd: number) => void closed.push(fd),
  } as unknown as AcceptCalls;
  const host: AcceptorHost = {
    epoll: 0,
    io: { calls, bufferedBytes: 0, wakeAtMs: Infinity },
    watch: () => true,
    wake() {},
    put(slot, task) {
      if (task === null) return;
      slots.push(slot);
      tasks.push(task);
    },
    end() {},
    threads: 1,
    report: (slot, kind) => void reports.push([slot, kind]),
    reportLazily() {},
    mayBeOwn: () => false,
    post() {},
    takeRules: () => null,
    pair: () => null,
    ssl: () => ssl,
    nodes: new NodeTlsTable(),
    browsers: new BrowserTlsTable(),
    begin: () => NO_MESSAGE,
    open: () => null,
  };
  const shared = new AcceptMemory(newAcceptMemory(CAPACITY));
  shared.handshakes[0] = HANDSHAKES.indexOf(handshake);
  shared.states[0] = OPEN;
  const table = new RelayMemory(newRelayMemory());
  const acceptor = new Acceptor(calls, table, shared, host);
  acceptor.listen(0);
  return { acceptor, table, shared, slots, tasks, closed, reports };
}

test("a slot is not used again while the batch may have events of its old socket", () => {
  const { acceptor, slots } = openAcceptor();
  while (slots.length < 4096) acceptor.accept(0);
  acceptor.tick(1);
  slots.length = 0;
  acceptor.accept(0); // the oldest are closed for them
  assert.equal(slots.length, 4);
  const before = FIRST_ACCEPTED_SLOT + 4096;
  assert.ok(Math.min(...slots) >= before, "those of the oldest are not used again");
  acceptor.tick(1);
  slots.length = 0;
  acceptor.accept(0);
  assert.ok(Math.max(...slots) < before, "now they are");
});

test("a client of a TLS listener that sends too little is closed after thirty seconds, and the main thread gets an event", (context) => {
  const { acceptor, table, slots, closed, reports } = openAcceptor("tls");
  let nowMs = 1_000;
  context.mock.method(performance, "now", () => nowMs);
  acceptor.accept(0);
  const [first] = slots as [number];
  nowMs += 29_999;
  acceptor.tick(1);
  assert.deepEqual(reports, []);
  nowMs += 51; // deadlines are looked at so often
  acceptor.tick(1);
  assert.deepEqual(reports[0], [first, TLS_ACCEPTED]);
  assert.deepEqual([reports.length, closed], [4, [1, 2, 3, 4]]);
  assert.equal(table.descriptors[first * 2], -1);
  assert.equal(table.wireNumbers[first * 2 * WIRE_NUMBERS + STAGE_NUMBER], HANDSHAKE_LATE);
});

test("a client whose first bytes are the main thread's is waited for twice as long as others", (context) => {
  const { acceptor, closed, reports } = openAcceptor("first-bytes");
  let nowMs = 1_000;
  context.mock.method(performance, "now", () => nowMs);
  acceptor.accept(0);
  nowMs += 59_999;
  acceptor.tick(1);
  assert.deepEqual(closed, []);
  nowMs += 51;
  acceptor.tick(1);
  assert.deepEqual([closed, reports], [[1, 2, 3, 4], []]);
});

test("of more clients in their TLS handshakes than there may be the oldest are closed", () => {
  const { acceptor, slots, closed, reports } = openAcceptor("tls");
  while (slots.length < 4100) acceptor.accept(0);
  assert.deepEqual([closed, reports], [[1, 2, 3, 4], []]);
});

test("while the main thread takes none, handshakes that are done wait here, and the oldest give way", () => {
  let objects = 0n;
  const freed: bigint[] = [];
  const ssl = { accept: () => ++objects, handshake: () => 1, free: (one: bigint) => void freed.push(one) };
  const { acceptor, table, shared, slots, tasks, closed, reports } = openAcceptor(
    "tls",
    ssl as unknown as Ssl,
  );
  shared.contexts[0] = 1n;
  const io = {} as TaskIo;
  while (slots.length < 4000) {
    acceptor.accept(0);
    for (const task of tasks.splice(0)) task.run(io);
  }
  const most = Math.floor((128 * 1024 * 1024) / 2 / (62 * 1024)); // half of the bound, for they are of one source
  const told = () => reports.map(([slot]) => slot);
  assert.deepEqual(told(), slots.slice(0, 256), "no more are on their way");
  assert.equal(closed.length, 4000 - 256 - most);
  assert.equal(freed.length, closed.length);
  assert.equal(closed[0], 257, "those that have been told stay");
  for (const slot of slots.slice(0, 3)) {
    acceptor.freeSlot(slot);
    acceptor.tlsAccepted.taken(slot);
  }
  const next = slots.slice(256 + closed.length, 256 + closed.length + 3);
  assert.deepEqual(told().slice(256), next, "one for each that was taken, in their order");
  const [first = assert.fail()] = next;
  assert.equal(table.wireNumbers[first * 2 * WIRE_NUMBERS + STAGE_NUMBER], HANDSHAKE_DONE);
  acceptor.unlisten(0);
  assert.equal(reports.length, 256 + most + 1, "all of them before the end of the listener");
});
