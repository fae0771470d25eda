import assert from "node:assert/strict";
import { test } from "node:test";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { FAULT } from "#platform/linux/relay-calls.ts";
import type { PendingConnection } from "./pending-connection.ts";
import { type Task, type TaskIo, WAITS } from "./task.ts";
import { encodeSockaddr } from "#platform/linux/sockaddr.ts";
import { NO_MESSAGE } from "#dataplane/workers/shared/wire-spec.ts";
import { VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import { decisionData, decisionPorts } from "../../../../test/support/decision-data.ts";
import { Acceptor } from "./acceptor.ts";
import { Decider } from "./decider.ts";
import { type AcceptorHost } from "./pending-task.ts";
import { HANDSHAKES } from "#dataplane/workers/shared/handshakes.ts";
import { CLOSED, AcceptMemory, newAcceptMemory, OPEN } from "#dataplane/workers/shared/accept-memory.ts";
import { CAPACITY, newRelayMemory, RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { HANDED_OVER, REQUESTED, UNLISTENED } from "#dataplane/workers/shared/opcodes.ts";
import { BrowserTlsTable } from "#dataplane/workers/wire/browser-tls.ts";
import { NodeTlsTable } from "#dataplane/workers/wire/node-tls.ts";

/** SOCKS5, of a client that does not wait for the answer to its greeting: CONNECT 192.0.2.1 port 80. */
const REQUEST = Uint8Array.of(5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 80);
const EINPROGRESS = -115;
const ECONNREFUSED = -111;
const REMOTE = 1;

/** An acceptor for which the test is the kernel and the main thread. */
function openAcceptor() {
  let descriptors = 0;
  const arrived: PendingConnection[] = [];
  const events: number[] = [];
  const calls: AcceptCalls = {
    address: new Uint8Array(28),
    bytes: Buffer.alloc(4096),
    watchListener: () => 0,
    unwatch() {},
    accept: () => ++descriptors,
    localName: () => -1,
    open: () => ++descriptors,
    connect: () => EINPROGRESS,
    takeError: () => ECONNREFUSED,
    look() {
      calls.bytes.set(REQUEST);
      return REQUEST.length;
    },
    say: (_: number, bytes: Uint8Array) => bytes.length,
    close() {},
    discard() {},
  } as unknown as AcceptCalls;
  encodeSockaddr(calls.address, { address: Uint8Array.of(198, 51, 100, 1), port: 4000 });
  const pair = { queued: false, halfClosed: false, onEvents: () => true, run: () => WAITS, drop() {} };
  const shared = new AcceptMemory(newAcceptMemory(CAPACITY));
  const host: AcceptorHost = {
    epoll: 0,
    io: { calls, bufferedBytes: 0, wakeAtMs: Infinity },
    watch: () => true,
    wake() {},
    put: (_, one) =>
      void (one !== null && one !== (pair as unknown) && arrived.push(one as PendingConnection)),
    end() {},
    threads: 1,
    report: (_, kind) => void events.push(kind),
    reportLazily() {},
    mayBeOwn: () => false,
    post() {},
    takeRules: () => null,
    ssl: () => null,
    nodes: new NodeTlsTable(),
    browsers: new BrowserTlsTable(),
    begin: () => NO_MESSAGE,
    open: () => null,
    pair: () => pair as unknown as Task,
  };
  shared.handshakes[0] = HANDSHAKES.indexOf("socks");
  shared.states[0] = OPEN;
  using ports = decisionPorts();
  const word = new VersionWord();
  const decider = new Decider(shared, host, word, ports.port2);
  const table = new RelayMemory(newRelayMemory());
  const acceptor = new Acceptor(calls, table, shared, host, undefined, decider);
  acceptor.listen(0);
  ports.port1.postMessage(decisionData(1));
  decider.takeVersion();
  return { acceptor, arrived, events, shared, word };
}

test("a listener reports no client behind the event that it has stopped", () => {
  const { acceptor, arrived, events, shared, word } = openAcceptor();
  word.present = 1;
  acceptor.accept(0);
  for (const one of arrived) one.run({} as TaskIo);
  assert.deepEqual([arrived.length, events], [4, []], "they are decided, and dial");
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
  assert.equal(events.filter((kind) => kind === HANDED_OVER).length, 4);
});
