import type { Duplex } from "node:stream";
import { DialError, messageOf, asError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Destination } from "#core/session.ts";
import { endWithReply } from "#net/listen/accept.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import {
  encodeFrame,
  MAX_CHUNK_BYTES,
  type MuxFrame,
  NETWORK_TCP,
  NETWORK_UDP,
  STATUS_END,
  STATUS_KEEP,
  STATUS_KEEP_ALIVE,
  STATUS_NEW,
  takeFrame,
} from "#protocols/shared/mux-cool-frame.ts";
import { CLIENT_IDLE_MS, MAX_HELD_BYTES, type MuxSession } from "#transport/mux/session.ts";
import { Silence } from "#transport/mux/silence.ts";
import { type Done, type MuxStream, PatientStream, type StreamOwner } from "#transport/mux/stream.ts";

/** What the connection has not passed on; beyond, datagrams are dropped. */
const MAX_QUEUED_BYTES = 512 * 1024;
const LAST_ID = 0xffff;

export interface CoolEvents {
  /** Called once, after the last stream has closed. */
  readonly onClosed: () => void;
  readonly log: Log;
}

/** One packet sub-session with one destination. */
export interface CoolPackets {
  send(payload: Uint8Array): void;
  close(): void;
}

interface PacketHooks {
  readonly onPacket: (payload: Buffer, from: Destination | null) => void;
  /** The server ended it, or the connection is gone. */
  readonly onEnd: () => void;
}

/** The client's side of mux.cool. Sub-sessions have no windows: a slow reader stops the connection at the bound. */
export class CoolClient implements MuxSession, StreamOwner {
  readonly #wire: Duplex;
  readonly #events: CoolEvents;
  readonly #streams = new Map<number, PatientStream>();
  readonly #packets = new Map<number, PacketHooks>();
  readonly #arrived = new ByteQueue();
  /** Writers that wait for the connection; at most one a stream. */
  readonly #blocked: Done[] = [];
  readonly #idleTimer: NodeJS.Timeout;
  #nextId = 1;
  #heldBytes = 0;
  readonly #silence = new Silence();
  #retiring = false;
  #closed = false;

  constructor(wire: Duplex, events: CoolEvents) {
    this.#wire = wire;
    this.#events = events;
    this.#idleTimer = setTimeout(() => {
      if (this.streams === 0) this.retire();
    }, CLIENT_IDLE_MS).unref();
    wire.on("data", (bytes: Buffer) => this.#take(bytes));
    wire.on("end", () => this.close(null));
    wire.on("error", (error) => this.close(error));
    wire.on("close", () => this.close(null));
    wire.on("drain", () => this.#release());
    wire.resume();
  }

  get streams(): number {
    return this.#streams.size + this.#packets.size;
  }

  get usable(): boolean {
    return !this.#closed && !this.#retiring && this.#nextId <= LAST_ID && !this.#silence.isLong;
  }

  open(destination: Destination): Duplex {
    const id = this.#newId();
    const stream = new PatientStream(this, id);
    this.#streams.set(id, stream);
    this.#wire.write(encodeFrame({ session: id, status: STATUS_NEW, network: NETWORK_TCP, destination }));
    return stream;
  }

  openPackets(destination: Destination, hooks: PacketHooks): CoolPackets {
    const id = this.#newId();
    this.#packets.set(id, hooks);
    let status = STATUS_NEW; // the first packet opens the sub-session
    return {
      send: (data) => {
        if (!this.#packets.has(id) || this.#wire.writableLength > MAX_QUEUED_BYTES || data.length > 0xffff)
          return;
        const address = status === STATUS_NEW ? { network: NETWORK_UDP, destination } : {};
        this.#wire.write(encodeFrame({ session: id, status, ...address, data }));
        status = STATUS_KEEP;
      },
      close: () => {
        if (!this.#packets.delete(id)) return;
        if (status !== STATUS_NEW) this.#wire.write(encodeFrame({ session: id, status: STATUS_END }));
        this.#rest();
      },
    };
  }

  retire(): void {
    this.#retiring = true;
    if (this.streams === 0) this.close(null);
  }

  close(error: Error | null): void {
    if (this.#closed) return;
    this.#closed = true;
    if (error !== null) this.#events.log.debug(() => `mux.cool: ${messageOf(error)}`);
    clearTimeout(this.#idleTimer);
    endWithReply(this.#wire, Buffer.alloc(0));
    for (const stream of this.#streams.values())
      stream.destroy(error ?? new Error("the mux connection has ended"));
    for (const { onEnd } of this.#packets.values()) onEnd();
    this.#packets.clear();
    this.#blocked.length = 0; // their streams are gone
    this.#events.onClosed();
  }

  sendData({ id: session }: MuxStream, data: Buffer, done: Done): void {
    if (this.#closed) return;
    let flowing = true;
    for (let at = 0; at < data.length; at += MAX_CHUNK_BYTES) {
      const part = data.subarray(at, at + MAX_CHUNK_BYTES);
      flowing = this.#wire.write(encodeFrame({ session, status: STATUS_KEEP, data: part }));
    }
    if (flowing) done();
    else this.#blocked.push(done);
  }

  sendEnd(stream: PatientStream, done: Done): void {
    if (stream.farEnded) this.#sendEnd(stream, false);
    else stream.waitForSilence(() => this.#sendEnd(stream, false));
    done();
  }

  taken(): void {} // no windows

  holds(bytes: number): void {
    this.#heldBytes += bytes;
    if (this.#heldBytes > MAX_HELD_BYTES) this.#wire.pause();
    else if (bytes < 0 && this.#heldBytes <= MAX_HELD_BYTES / 2 && this.#wire.isPaused()) this.#wire.resume();
  }

  gone(stream: PatientStream, whole: boolean): void {
    if (!this.#streams.delete(stream.id)) return;
    stream.stopWaiting();
    this.#sendEnd(stream, !whole);
    this.#rest();
  }

  #newId(): number {
    if (!this.usable) throw new DialError("failed", "the mux connection takes no more streams");
    this.#idleTimer.refresh();
    this.#silence.asked();
    return this.#nextId++;
  }

  #sendEnd(stream: PatientStream, failed: boolean): void {
    if (stream.endSent || this.#closed) return;
    stream.endSent = true;
    this.#wire.write(encodeFrame({ session: stream.id, status: STATUS_END, failed }));
  }

  /** A sub-session has ended. */
  #rest(): void {
    if (this.#closed || this.streams > 0) return;
    this.#silence.unused();
    if (this.#retiring || this.#nextId > LAST_ID) this.close(null);
    else this.#idleTimer.refresh();
  }

  #release(): void {
    while (this.#blocked.length > 0 && !this.#wire.writableNeedDrain) this.#blocked.shift()?.();
  }

  #take(bytes: Buffer): void {
    if (this.#closed) return;
    this.#silence.heard();
    this.#arrived.push(bytes);
    try {
      for (let frame = takeFrame(this.#arrived); frame !== null; frame = takeFrame(this.#arrived))
        this.#dispatch(frame);
    } catch (error) {
      this.close(asError(error));
    }
  }

  #dispatch({ session: id, status, data, destination, failed }: MuxFrame): void {
    if (status === STATUS_KEEP_ALIVE || status === STATUS_NEW) return; // servers open nothing
    const stream = this.#streams.get(id);
    const packets = this.#packets.get(id);
    if (data !== null && data.length > 0) {
      stream?.arrive(data);
      packets?.onPacket(data, destination);
    }
    if (status !== STATUS_END) return;
    if (stream !== undefined && failed) stream.destroy(new Error("the server broke the connection off"));
    else stream?.farEnd();
    if (!this.#packets.delete(id)) return;
    packets?.onEnd();
    this.#rest();
  }
}
