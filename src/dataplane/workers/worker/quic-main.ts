/** The program of a thread of QUIC: connections in its event loop, and a relay worker beside them that has their streams. */
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "#core/errors.ts";
import type { ThreadData, ThreadMessage } from "#dataplane/workers/shared/worker-data.ts";
import { openAcceptCalls } from "#platform/linux/accept-calls.ts";
import { openPoller } from "#platform/linux/uv-poll.ts";
import { quicLibrary } from "#platform/quic.ts";
import { openObfs } from "#protocols/hysteria2/obfs.ts";
import { ThreadEndpoints } from "#transport/quic/remote/thread-endpoints.ts";
import { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import { VersionWord } from "#dataplane/workers/shared/decision-data.ts";
import { Loop } from "./loop.ts";
import { Wires } from "#dataplane/workers/wire/open-wire.ts";
import { atSeams } from "#dataplane/workers/shared/seams.ts";
import { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";

/** Pipes that nothing has used for so long are closed. */
const REST_MS = 3_000;

const data: ThreadData = workerData;
const calls = openAcceptCalls();
const poller = openPoller();
const library = quicLibrary();
if (calls === null || poller === null || library === null || parentPort === null || data.quic === undefined)
  throw new Error("a thread of QUIC needs node:ffi and OpenSSL 3.5");
const main = parentPort;
const table = new RelayMemory(data.table);
const acceptor = new AcceptMemory(data.accepts);
const endpoints = new ThreadEndpoints({
  port: data.quic,
  library,
  duplicate: (fd) => calls.duplicate(fd),
  makeFilter: (spec) => (spec === null ? null : openObfs(spec, "a listener")),
});
const streams = {
  lend: endpoints.lend.bind(endpoints),
  onReady: (index: number, events: number): void => {
    loop.onWire(index, events);
    schedule();
  },
};
const wires = new Wires(table, data.messages, calls.buffer, streams);
acceptor.onAlpn[0] = wires.ssl()?.onAlpn() ?? 0n;
const loop = new Loop({
  calls,
  table,
  acceptor,
  pipes: data.pipes,
  wires,
  post: () => calls.raiseSignal(table.eventSignal),
  onFault: (fault) => main.postMessage({ fault } satisfies ThreadMessage),
  unauthenticated: data.unauthenticated,
  threads: data.threads,
  decisions: data.decisions,
  version: new VersionWord(data.version),
  atSeam: data.seams === undefined ? undefined : atSeams(data.seams),
});

const watch = poller.watch(table.epoll, turn);
const resting = setInterval(() => loop.rest(), REST_MS);
/** For what has to happen at a time, and not for an event. */
let later: NodeJS.Timeout | undefined;
let isDue = false;
let isEnding = false;

function schedule(): void {
  if (isDue || isEnding) return;
  isDue = true;
  setImmediate(turn);
}

function turn(): void {
  isDue = false;
  if (isEnding) return;
  if (table.stopped) return end();
  clearTimeout(later);
  const sleepMs = loop.poll();
  if (sleepMs === 0) schedule();
  else later = setTimeout(turn, sleepMs);
}

/**
 * Nothing may be watched by libuv when the runtime takes the loop down, and it must not be taken down from within a callback
 * of ours: both abort the process.
 */
function end(): void {
  if (isEnding) return;
  isEnding = true;
  clearInterval(resting);
  clearTimeout(later);
  watch.close();
  void endpoints.close().then(() => setImmediate(() => setImmediate(leave))); // libuv has said that all is closed
}

function leave(): void {
  loop.finish();
  table.goAway();
  process.exit();
}

process.on("uncaughtException", (error) => {
  main.postMessage({ why: messageOf(error) } satisfies ThreadMessage);
  end();
});
schedule();
main.postMessage({} satisfies ThreadMessage);
