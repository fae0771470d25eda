/** A client whose connection another thread has, as protocols see it. */
import type { Endpoint } from "#core/endpoint.ts";
import type { CongestionChoice } from "#transport/quic/congestion/choice.ts";
import type { ServedClient, ServedConnection, ServedEvents } from "#transport/quic/server/served.ts";
import { DatagramPack, unpackDatagrams } from "./datagram-pack.ts";
import type { ClientState, FromThread, ToThread } from "./messages.ts";
import type { Outbox } from "./outbox.ts";
import { RemoteStream, type RemoteStreamHost } from "./remote-stream.ts";

/** Of all that the thread has not read: it has stalled, and datagrams are dropped. */
const MOST_UNREAD_BYTES = 16 * 1024 * 1024;

/** What it asks of its thread. */
export interface RemoteThread {
  /** Its relay worker. */
  readonly worker: object;
  readonly outbox: Outbox<ToThread>;
}

type OfStream = Extract<FromThread, { readonly stream: number }>;

export class RemoteClient implements ServedClient, ServedConnection, RemoteStreamHost {
  readonly number: number;
  readonly local: Endpoint;
  readonly closed: Promise<Error | null>;
  peer: Endpoint;
  maxDatagramBytes: number;
  /** What takes its streams; null: it is over. */
  events: ServedEvents | null = null;
  readonly #thread: RemoteThread;
  readonly #abortCode: number;
  readonly #streams = new Map<number, RemoteStream>();
  readonly #datagrams: DatagramPack;
  readonly #keys = new Map<number, PromiseWithResolvers<Buffer>>();
  #settleClosed: (error: Error | null) => void;
  #isOver = false;
  #opened = 0;
  #asked = 0;

  constructor(thread: RemoteThread, state: ClientState, local: Endpoint, abortCode: number) {
    const { promise, resolve } = Promise.withResolvers<Error | null>();
    this.#thread = thread;
    this.#datagrams = new DatagramPack(thread.outbox, (bytes) =>
      this.#say({ op: "datagrams", client: this.number, bytes }, bytes.buffer),
    );
    this.#abortCode = abortCode;
    this.number = state.client;
    this.peer = state.peer;
    this.maxDatagramBytes = state.maxDatagramBytes;
    this.local = local;
    this.closed = promise;
    this.#settleClosed = resolve;
  }

  get connection(): ServedConnection {
    return this;
  }

  get worker(): object {
    return this.#thread.worker;
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  settle(): void {
    this.#say({ op: "settle", client: this.number });
  }

  useCongestion(choice: CongestionChoice): void {
    this.#say({ op: "congestion", client: this.number, choice });
  }

  widen(bytes: number): void {
    this.#say({ op: "widen", client: this.number, bytes });
  }

  sendDatagram(payload: Uint8Array, rest?: Uint8Array): void {
    const { unreadBytes } = this.#thread.outbox;
    if (!this.#isOver && unreadBytes <= MOST_UNREAD_BYTES) this.#datagrams.add(payload, rest);
  }

  open(isBidi: boolean): RemoteStream | null {
    if (this.#isOver) return null;
    const stream = --this.#opened;
    this.#say({ op: "open", client: this.number, stream, isBidi });
    return this.#enter(stream, { reads: isBidi, writes: true });
  }

  #enter(id: number, ways: { readonly reads: boolean; readonly writes: boolean }): RemoteStream {
    const stream = new RemoteStream(this, id, ways);
    stream.abortCode = this.#abortCode;
    this.#streams.set(id, stream);
    return stream;
  }

  exportKey(label: Uint8Array, context: Uint8Array, size: number): Promise<Buffer> {
    const asked = Promise.withResolvers<Buffer>();
    if (this.#isOver) asked.reject(new Error("the connection is over"));
    else {
      const number = this.#asked++;
      this.#keys.set(number, asked);
      this.#say({ op: "export", client: this.number, number, label, context, size });
    }
    return asked.promise;
  }

  close(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#say({ op: "end", client: this.number, code, reason });
    this.#thread.outbox.flush();
    this.onOver(null);
  }

  /** No more happens. `error` null: closed by us without one. */
  onOver(error: Error | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.events = null;
    const reason = error ?? new Error("the connection was closed");
    for (const stream of this.#streams.values()) stream.abandon(reason);
    for (const asked of this.#keys.values()) asked.reject(reason);
    this.#keys.clear();
    this.#settleClosed(error);
  }

  onDatagrams(pack: Uint8Array<ArrayBuffer>): void {
    unpackDatagrams(pack, (payload) => this.events?.onDatagram(payload));
  }

  onState({ peer, maxDatagramBytes }: ClientState): void {
    this.peer = peer;
    this.maxDatagramBytes = maxDatagramBytes;
  }

  onExported(number: number, key: Uint8Array | null): void {
    const asked = this.#keys.get(number);
    this.#keys.delete(number);
    if (key === null) asked?.reject(new Error("the connection has no such key any more"));
    else asked?.resolve(Buffer.from(key));
  }

  onStreamMessage(message: OfStream): void {
    if (message.op === "stream") return this.#onOpened(message.stream, message.isBidi);
    const stream = this.#streams.get(message.stream);
    if (stream === undefined) return; // it is closed here
    if (message.op === "data") stream.onData(message.bytes);
    else if (message.op === "wrote") stream.onWrote(message.bytes);
    else if (message.op === "ended") stream.onEnd();
    else if (message.op === "finished") stream.onFinished();
    else if (message.op === "gone") stream.onGone(message.error === null ? null : new Error(message.error));
  }

  #onOpened(id: number, isBidi: boolean): void {
    if (this.events === null) return;
    this.events.onStream(this.#enter(id, { reads: true, writes: isBidi }));
  }

  write(stream: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.#say({ op: "write", client: this.number, stream, bytes }, bytes.buffer);
  }

  finish(stream: number): void {
    this.#say({ op: "finish", client: this.number, stream });
  }

  destroy(stream: number, code: number, isFault: boolean): void {
    this.#say({ op: "destroy", client: this.number, stream, code, isFault });
  }

  took(stream: number, bytes: number): void {
    this.#say({ op: "took", client: this.number, stream, bytes });
  }

  flush(): void {
    this.#thread.outbox.flush();
  }

  onClosed(stream: number): void {
    this.#streams.delete(stream);
  }

  #say(message: ToThread, given?: ArrayBuffer): void {
    if (!this.#isOver) this.#thread.outbox.put(message, given);
  }
}
