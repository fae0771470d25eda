/** Sockets that clients ask: the listener, and the two relays that hijacked questions take (dns.md §2, §12). */
import { once } from "node:events";
import type { Duplex } from "node:stream";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { InboundEnv } from "#core/inbound.ts";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Endpoint } from "#core/session.ts";
import type { DatagramListener } from "#core/sockets.ts";
import { FairQueue } from "#lib/fair-queue.ts";
import { type Bounds, PerClientLimiter } from "#lib/in-flight.ts";
import { FrameReader, frameOf } from "./frames.ts";
import type { HandleDns } from "./service.ts";

export type DnsServerEnv = Pick<InboundEnv, "listenTcp" | "listenUdp" | "log"> & {
  /** Questions that are being answered; shared with the other ways by which clients ask. */
  readonly questions: PerClientLimiter;
  readonly handle: HandleDns;
  /** Called behind a flood of questions: what they took can be given back. Absent: nothing is. */
  readonly onSettled?: () => void;
};

/**
 * Questions being answered, shared evenly among sources under load. At the bound a UDP question is dropped, and a TCP
 * connection is closed.
 */
const RUNNING: Bounds = { all: 4096, ofOne: 1024 };
/**
 * Questions by UDP that are begun in one turn of the event loop. Others wait, counted as being answered: a flood must be read
 * faster than it can be answered, or the kernel drops honest questions with it.
 */
const BEGUN_IN_A_TURN = 8;
/** TCP connections. At the bound a new one is closed. */
const STREAMS: Bounds = { all: 1024, ofOne: 256 };
/** Questions of a connection whose answers the client does not have yet. At the bound it is not read until one has gone out. */
const MAX_STREAM_RUNNING = 64;
const IDLE_MS = 10_000;
/** A client that does not take its answers is cut off: it has hundreds of connections, and an answer up to 64 KiB. */
const MAX_UNSENT_BYTES = 1 << 18;

export function dnsQuestions(): PerClientLimiter {
  return new PerClientLimiter(RUNNING);
}

/** Answers questions on the given sockets and returns their addresses. TCP connections end with their clients. */
export async function openDnsServer(env: DnsServerEnv): Promise<readonly Endpoint[]> {
  const { listenTcp, listenUdp, log, questions, handle } = env;
  const streams = new PerClientLimiter(STREAMS);
  const udp = await listenUdp((socket) => serveDatagrams(socket, env));
  const onAccepted = (connection: AcceptedConnection): void => {
    const client = connection.source.ip;
    const stream = connection.stream();
    stream.on("error", (error) => log.debug(() => `[DNS] TCP client: ${error.message}`));
    const serve = () => {
      serveDnsStream(stream, (message, by) => questions.use(client, () => handle(message, by)), log);
      return once(stream, "close");
    };
    streams.use(client, serve).catch(() => stream.destroy());
  };
  const tcp = await listenTcp({ handshake: "unknown", onAccepted });
  return [...udp, ...tcp];
}

interface Question {
  readonly message: Uint8Array;
  readonly from: Endpoint;
}

function serveDatagrams(
  socket: DatagramListener,
  { questions: limiter, handle, log, onSettled = () => {} }: DnsServerEnv,
): void {
  const work = async ({ message, from }: Question): Promise<void> => {
    try {
      socket.send(await handle(message, { network: "udp" }), from);
    } catch (error) {
      log.debug(() => `[DNS] dropped a packet of ${from.ip}: ${messageOf(error)}`);
    }
  };
  const questions = new FairQueue<Question>({ limiter, perTurn: BEGUN_IN_A_TURN, work, onSettled });
  socket.receive((message, from) => {
    if (from.port === 0) return; // no reply can be sent to port 0
    // A flood is refused before anything is made for it: neither a copy nor a line in the log.
    if (questions.admits(from.ip)) questions.push(from.ip, { message: Buffer.from(message), from });
  });
}

/**
 * Answers length-prefixed questions until the client ends, nothing comes for ten seconds, or it sends nonsense. Takes
 * the stream over.
 */
export function serveDnsStream(stream: Duplex, handle: HandleDns, log: Log): void {
  let running = 0;
  let ended = false;
  const idle = setTimeout(() => stream.destroy(), IDLE_MS);
  const close = (error: unknown) => {
    log.debug(() => `[DNS] TCP client cut off: ${messageOf(error)}`);
    stream.destroy();
  };
  const isFull = () => running >= MAX_STREAM_RUNNING;
  const answered = async (answer: Uint8Array): Promise<void> => {
    if (stream.destroyed) return;
    const { promise: taken, resolve } = Promise.withResolvers<void>();
    stream.write(frameOf(answer), () => resolve());
    if (stream.writableLength > MAX_UNSENT_BYTES) stream.destroy();
    await taken;
  };
  const goOn = () => {
    running--;
    if (stream.destroyed) return;
    idle.refresh();
    frames.drain();
    if (!isFull()) stream.resume();
    if (ended && running === 0) stream.end();
  };
  const frames = new FrameReader((message) => {
    running++;
    idle.refresh();
    void handle(message, { network: "tcp" }).then(answered, close).finally(goOn);
  }, isFull);
  stream.on("error", () => stream.destroy());
  stream.on("close", () => clearTimeout(idle));
  stream.on("end", () => {
    ended = true;
    if (running === 0) stream.end();
  });
  stream.on("data", (chunk: Buffer) => {
    frames.push(chunk);
    if (isFull()) stream.pause();
  });
}
