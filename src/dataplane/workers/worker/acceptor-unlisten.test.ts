import assert from "node:assert/strict";
import { test } from "node:test";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { FAULT, WRITABLE } from "#platform/linux/relay-calls.ts";
import type { PendingConnection } from "./pending-connection.ts";
import { type Task, type TaskIo, WAITS } from "./task.ts";
import { Acceptor } from "./acceptor.ts";
import { type AcceptorHost } from "./pending-task.ts";
import { HANDSHAKES } from "#dataplane/workers/shared/handshakes.ts";
import {
  CLOSED,
  AcceptMemory,
  newAcceptMemory,
  OPEN,
  requestSlotOf,
} from "#dataplane/workers/shared/accept-memory.ts";
import {
  CAPACITY,
  HANDED_OVER,
  newRelayMemory,
  REQUESTED,
  RelayMemory,
  UNLISTENED,
} from "#dataplane/workers/shared/relay-memory.ts";

const EINPROGRESS = -115;
const ECONNREFUSED = -111;
const REMOTE = 1;

/** An acceptor for which the test is the kernel and the main thread. */
function openAcceptor() {
  let descriptors = 0;
  const arrived: PendingConnection[] = [];
  const events: number[] = [];
  const calls = {
    address: new Uint8Array(28),
    bytes: Buffer.alloc(4096),
    watchListener: () => 0,
    unwatch() {},
    accept: () => ++descriptors,
    localName: () => -1,
    open: () => ++descriptors,
    connect: () => EINPROGRESS,
    takeError: () => ECONNREFUSED,
    close() {},
    discard() {},
  } as unknown as AcceptCalls;
  const pair = { queued: false, halfClosed: false, onEvents: () => true, run: () => WAITS, drop() {} };
  const shared = new AcceptMemory(newAcceptMemory(CAPACITY));
  const host: AcceptorHost = {
    epoll: 0,
    watch: () => true,
    put: (_, one) =>
      void (one !== null && one !== (pair as unknown) && arrived.push(one as PendingConnection)),
    end() {},
    report: (_, kind) => void events.push(kind),
    reportLazily() {},
    ssl: () => null,
    pair: () => pair as unknown as Task,
  };
  shared.handshakes[0] = HANDSHAKES.indexOf("none");
  shared.states[0] = OPEN;
  const acceptor = new Acceptor(calls, new RelayMemory(newRelayMemory()), shared, host);
  acceptor.listen(0);
  return { acceptor, arrived, events, shared };
}

test("a listener reports no client behind the event that it has stopped", () => {
  const { acceptor, arrived, events, shared } = openAcceptor();
  acceptor.accept(0);
  const [first] = arrived as [PendingConnection];
  shared.writeDial(requestSlotOf(shared.tags[first.slot] as number), {
    address: new Uint8Array(16),
    mark: 0,
    timeoutMs: 5_000,
    idleSeconds: 0,
    intervalSeconds: 0,
    device: new Uint8Array(),
    replyBytes: new Uint8Array(),
    routeId: 1, // it is good for others
    epoch: shared.epoch,
  });
  first.dial();
  first.onEvents(REMOTE, WRITABLE);
  first.run({} as TaskIo);
  arrived.length = 0;
  acceptor.accept(0); // these four dial by it
  assert.equal(events.filter((kind) => kind === REQUESTED).length, 4, "they have not asked");
  shared.states[0] = CLOSED;
  acceptor.unlisten(0);
  // The main thread may have given the number to another listener by now.
  for (const one of arrived) {
    one.onEvents(REMOTE, FAULT);
    one.run({} as TaskIo);
  }
  const late = events.slice(events.indexOf(UNLISTENED) + 1);
  assert.deepEqual(
    late.filter((kind) => kind === REQUESTED || kind === HANDED_OVER),
    [],
  );
});
