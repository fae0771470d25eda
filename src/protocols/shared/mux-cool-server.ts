import { Duplex } from "node:stream";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Datagram, DatagramFlow, Destination } from "#core/session.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { onEnd } from "#net/stream/late-end.ts";
import {
  encodeFrame,
  MAX_CHUNK_BYTES,
  type MuxFrame,
  NETWORK_UDP,
  STATUS_END,
  STATUS_KEEP,
  STATUS_NEW,
  takeFrame,
} from "./mux-cool-frame.ts";

export interface MuxServerOptions {
  /** A flow is set: only datagrams may be carried. */
  readonly datagramsOnly: boolean;
  readonly onStream: (stream: Duplex, destination: Destination) => void;
  readonly onFlow: (flow: DatagramFlow, destination: Destination) => void;
  readonly log: Log;
}

interface SubSession {
  deliver(frame: MuxFrame): void;
  /** The peer ended it, or the connection is gone. */
  peerEnded(failed: boolean): void;
}

/** Sub-sessions that one connection may have at a time; one more ends the connection. */
const MAX_SESSIONS = 1024;
/** A connection without sub-sessions is closed after so long. */
const IDLE_MS = 60_000;
/** Bytes the connection has not passed on; beyond, datagrams are dropped. */
const MAX_QUEUED_BYTES = 512 * 1024;
const MAX_EARLY_DATAGRAMS = 64;
/** Ends that are said, one after the other, of sub-sessions that are none, to a peer that reads nothing meanwhile; one more ends the connection. */
const MAX_UNREAD_ENDS = 10_000;

/**
 * The server's side of mux.cool: many sub-sessions in one stream, which it owns. The protocol has no flow control of a
 * single sub-session: a reader that stops stops the whole connection.
 */
export class MuxServer {
  readonly #wire: Duplex;
  readonly #options: MuxServerOptions;
  readonly #sessions = new Map<number, SubSession>();
  readonly #arrived = new ByteQueue();
  readonly #waiting = new Set<SubSession>();
  readonly #idleTimer: NodeJS.Timeout;
  #unreadEnds = 0;

  constructor(wire: Duplex, options: MuxServerOptions) {
    this.#wire = wire;
    this.#options = options;
    this.#idleTimer = setInterval(() => {
      if (this.#sessions.size === 0) wire.destroy();
    }, IDLE_MS).unref();
    wire.on("data", (bytes: Buffer) => this.#take(bytes));
    onEnd(wire, () => wire.destroy());
    wire.on("close", () => this.#close());
    wire.on("drain", () => (this.#unreadEnds = 0));
    wire.setMaxListeners(0); // each sub-session waits for 'drain' by itself
    wire.resume(); // a handshake before may have paused it
  }

  #close(): void {
    clearInterval(this.#idleTimer);
    for (const session of this.#sessions.values()) session.peerEnded(true);
    this.#sessions.clear();
  }

  #take(bytes: Buffer): void {
    this.#arrived.push(bytes);
    try {
      for (let frame = takeFrame(this.#arrived); frame !== null; frame = takeFrame(this.#arrived))
        this.#dispatch(frame);
    } catch (error) {
      this.#options.log.debug(() => `mux: ${messageOf(error)}`);
      this.#wire.destroy();
    }
  }

  #dispatch(frame: MuxFrame): void {
    const { session: id, status } = frame;
    if (status === STATUS_NEW) this.#open(frame);
    const session = this.#sessions.get(id);
    if (status === STATUS_END) session?.peerEnded(frame.failed);
    else if (status === STATUS_KEEP || status === STATUS_NEW) {
      if (session === undefined) this.#sayEnd(id);
      else if (frame.data !== null) session.deliver(frame);
    }
  }

  #sayEnd(id: number): void {
    const isTaken = this.#wire.write(encodeFrame({ session: id, status: STATUS_END }));
    if (!isTaken && ++this.#unreadEnds > MAX_UNREAD_ENDS) throw new Error("the peer reads no answers");
  }

  #open({ session: id, network, destination }: MuxFrame): void {
    if (destination === null) return;
    if (this.#sessions.size >= MAX_SESSIONS) throw new Error(`more than ${MAX_SESSIONS} connections`);
    this.#sessions.get(id)?.peerEnded(true);
    const { datagramsOnly, onFlow, onStream } = this.#options;
    if (network === NETWORK_UDP) {
      const flow: MuxFlow = new MuxFlow(this.#wire, id, destination, () => this.#forget(id, flow));
      this.#sessions.set(id, flow);
      onFlow(flow, destination);
      return;
    }
    if (datagramsOnly) throw new Error("a stream where the flow allows datagrams only");
    const stream: MuxStream = new MuxStream(this.#wire, id, {
      onFull: () => this.#waiting.add(stream),
      onRead: () => this.#resume(stream),
      onClose: () => {
        this.#forget(id, stream);
        this.#resume(stream);
      },
    });
    this.#sessions.set(id, stream);
    onStream(stream, destination);
  }

  /** Its number may be another one's by now. */
  #forget(id: number, session: SubSession): void {
    if (this.#sessions.get(id) === session) this.#sessions.delete(id);
  }

  #resume(session: SubSession): void {
    if (this.#waiting.delete(session) && this.#waiting.size === 0) this.#wire.resume();
  }
}

interface MuxStreamHooks {
  readonly onFull: () => void;
  readonly onRead: () => void;
  readonly onClose: () => void;
}

class MuxStream extends Duplex implements SubSession {
  readonly #wire: Duplex;
  readonly #id: number;
  readonly #hooks: MuxStreamHooks;
  #inputEnded = false;
  /** Its reader has as much as it takes for now. */
  #isFull = false;

  constructor(wire: Duplex, id: number, hooks: MuxStreamHooks) {
    super({ allowHalfOpen: true });
    this.#wire = wire;
    this.#id = id;
    this.#hooks = hooks;
  }

  deliver({ data }: MuxFrame): void {
    if (data === null || data.length === 0 || this.#inputEnded || this.push(data)) return;
    this.#isFull = true;
    this.#hooks.onFull();
    this.#wire.pause();
  }

  /** A second end is the answer to data that the peer does not want: it has left. */
  peerEnded(failed: boolean): void {
    const isOver = failed || this.#inputEnded;
    this.#inputEnded = true;
    if (isOver) this.destroy();
    else if (!this.#isFull) this.push(null); // else once there is room: behind its end nothing asks for more
  }

  override _read(): void {
    this.#isFull = false;
    if (this.#inputEnded) this.push(null);
    this.#hooks.onRead();
  }

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    let flowing = true;
    for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES) {
      const data = bytes.subarray(at, at + MAX_CHUNK_BYTES);
      flowing = this.#wire.write(encodeFrame({ session: this.#id, status: STATUS_KEEP, data }));
    }
    if (flowing || this.#wire.destroyed) done();
    else this.#wire.once("drain", done);
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#wire.writable) this.#wire.write(encodeFrame({ session: this.#id, status: STATUS_END }));
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.writableFinished && this.#wire.writable)
      this.#wire.write(encodeFrame({ session: this.#id, status: STATUS_END, failed: error !== null }));
    this.#hooks.onClose();
    done(error);
  }
}

class MuxFlow implements DatagramFlow, SubSession {
  readonly closed: Promise<void>;
  readonly #wire: Duplex;
  readonly #id: number;
  readonly #forget: () => void;
  readonly #settle: () => void;
  #last: Destination;
  #open = true;
  #on: ((item: Datagram) => void) | null = null;
  /** Datagrams that came before a receiver was set; past the bound the newest is dropped. */
  #early: Datagram[] = [];

  constructor(wire: Duplex, id: number, first: Destination, forget: () => void) {
    this.#wire = wire;
    this.#id = id;
    this.#last = first;
    this.#forget = forget;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#settle = resolve;
  }

  deliver({ data, destination }: MuxFrame): void {
    this.#last = destination ?? this.#last;
    if (data === null) return;
    const item = { payload: data, destination: this.#last };
    if (this.#on !== null) this.#on(item);
    else if (this.#early.length < MAX_EARLY_DATAGRAMS) this.#early.push(item);
  }

  peerEnded(): void {
    this.#forget();
    this.#open = false;
    this.#settle();
  }

  send({ payload, destination }: Datagram): void {
    const wire = this.#wire;
    if (!this.#open || !wire.writable || wire.writableLength > MAX_QUEUED_BYTES) return;
    if (payload.length > 0xffff || destination.ip === null) return;
    const frame = {
      session: this.#id,
      status: STATUS_KEEP,
      network: NETWORK_UDP,
      destination,
      data: payload,
    };
    wire.write(encodeFrame(frame));
  }

  receive(on: (item: Datagram) => void): void {
    this.#on = on;
    for (const item of this.#early.splice(0)) on(item);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#open) return;
    this.#forget();
    if (this.#wire.writable) this.#wire.write(encodeFrame({ session: this.#id, status: STATUS_END }));
    this.peerEnded();
  }
}
