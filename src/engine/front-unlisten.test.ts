import assert from "node:assert/strict";
import { test } from "node:test";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { FAULT, WRITABLE } from "#platform/linux/relay-calls.ts";
import type { Arriving } from "./arriving.ts";
import { type Conversation, type Io, WAITS } from "./conversation.ts";
import { Front } from "./front.ts";
import { type FrontHost, HANDSHAKES } from "./newcomer.ts";
import { CLOSED, FrontTable, newFrontMemory, OPEN, placeOf } from "./front-table.ts";
import { CAPACITY, HANDED, newTableMemory, REQUESTED, SharedTable, UNLISTENED } from "./shared-table.ts";

const EINPROGRESS = -115;
const ECONNREFUSED = -111;
const REMOTE = 1;

/** The front of a thread of which a test is the kernel and the main thread. */
function openFront() {
  let descriptors = 0;
  const arrived: Arriving[] = [];
  const news: number[] = [];
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
  const pair = { queued: false, halfClosed: false, notice: () => true, run: () => WAITS, drop() {} };
  const shared = new FrontTable(newFrontMemory(CAPACITY));
  const host: FrontHost = {
    epoll: 0,
    watch: () => true,
    put: (_, one) => void (one !== null && one !== (pair as unknown) && arrived.push(one as Arriving)),
    end() {},
    report: (_, kind) => void news.push(kind),
    reportAtLeisure() {},
    ssl: () => null,
    pair: () => pair as unknown as Conversation,
  };
  shared.handshakes[0] = HANDSHAKES.indexOf("none");
  shared.states[0] = OPEN;
  const front = new Front(calls, new SharedTable(newTableMemory()), shared, host);
  front.listen(0);
  return { front, arrived, news, shared };
}

test("nobody comes of a listener behind the news that nobody does any more", () => {
  const { front, arrived, news, shared } = openFront();
  front.accept(0);
  const [first] = arrived as [Arriving];
  shared.writeDial(placeOf(shared.tags[first.slot] as number), {
    address: new Uint8Array(16),
    mark: 0,
    timeoutMs: 5_000,
    idleSeconds: 0,
    intervalSeconds: 0,
    device: new Uint8Array(),
    words: new Uint8Array(),
    standing: 1, // it is good for others
    epoch: shared.epoch,
  });
  first.dial();
  first.notice(REMOTE, WRITABLE);
  first.run({} as Io);
  arrived.length = 0;
  front.accept(0); // these four dial by it
  assert.equal(news.filter((kind) => kind === REQUESTED).length, 4, "they have not asked");
  shared.states[0] = CLOSED;
  front.unlisten(0);
  // The main thread may have given the number to another listener by now.
  for (const one of arrived) {
    one.notice(REMOTE, FAULT);
    one.run({} as Io);
  }
  const late = news.slice(news.indexOf(UNLISTENED) + 1);
  assert.deepEqual(
    late.filter((kind) => kind === REQUESTED || kind === HANDED),
    [],
  );
});
