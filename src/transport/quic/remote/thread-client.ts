/** A client in its own thread: what comes of it is told to the main thread, and what that says is done. */
import type { QuicServerConnection, QuicServerEvents } from "#transport/quic/server/connection.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { DatagramPack, unpackDatagrams } from "./datagram-pack.ts";
import type { FromThread, StreamName, ToThread } from "./messages.ts";
import type { Outbox } from "./outbox.ts";
import { ThreadStream, type ThreadStreamHost } from "./thread-stream.ts";

type OfClient = Extract<ToThread, { readonly client: number }>;
type OfStream = Extract<ToThread, StreamName>;

export interface ThreadClientParts {
  readonly client: QuicServerConnection;
  readonly number: number;
  readonly endpoint: number;
  readonly outbox: Outbox<FromThread>;
  readonly onOver: () => void;
}

export class ThreadClient implements QuicServerEvents, ThreadStreamHost {
  readonly number: number;
  readonly #client: QuicServerConnection;
  readonly #outbox: Outbox<FromThread>;
  readonly #datagrams: DatagramPack;
  readonly #streams = new Map<number, ThreadStream>();
  /** As the main thread knows them. */
  #peer;
  #maxDatagramBytes;

  constructor({ client, number, endpoint, outbox, onOver }: ThreadClientParts) {
    this.number = number;
    this.#client = client;
    this.#outbox = outbox;
    this.#datagrams = new DatagramPack(outbox, (bytes) =>
      outbox.put({ op: "datagrams", client: number, bytes }, bytes.buffer),
    );
    this.#peer = client.peer;
    this.#maxDatagramBytes = client.connection.maxDatagramBytes;
    const state = { peer: this.#peer, maxDatagramBytes: this.#maxDatagramBytes };
    outbox.put({ op: "client", endpoint, client: number, ...state });
    void client.closed.then((error) => {
      outbox.put({ op: "over", client: number, error: error?.message ?? null });
      onOver();
    });
  }

  onStream(stream: QuicStream): void {
    this.#sayState();
    this.#outbox.put({
      op: "stream",
      client: this.number,
      stream: stream.id,
      isBidi: stream.send !== null,
    });
    this.#streams.set(stream.id, new ThreadStream(this, stream, stream.id));
  }

  onDatagram(payload: Uint8Array): void {
    this.#sayState();
    this.#datagrams.add(payload);
  }

  #sayState(): void {
    const { peer } = this.#client;
    const { maxDatagramBytes } = this.#client.connection;
    if (peer === this.#peer && maxDatagramBytes === this.#maxDatagramBytes) return;
    this.#peer = peer;
    this.#maxDatagramBytes = maxDatagramBytes;
    this.#outbox.put({ op: "state", client: this.number, peer, maxDatagramBytes });
  }

  post(message: FromThread, given?: ArrayBuffer): void {
    this.#outbox.put(message, given);
  }

  onClosed(id: number): void {
    this.#streams.delete(id);
  }

  /** As `ThreadStream.lend`. */
  lend(stream: number, takenBytes: number): ThreadStream | null {
    return this.#streams.get(stream)?.lend(takenBytes) ?? null;
  }

  take(message: OfClient): void {
    if ("stream" in message) return this.#takeOfStream(message);
    const client = this.#client;
    if (message.op === "datagrams") {
      this.#sayState();
      unpackDatagrams(message.bytes, (payload) => client.connection.sendDatagram(payload));
    } else if (message.op === "settle") client.settle();
    else if (message.op === "widen") client.connection.widen(message.bytes);
    else if (message.op === "end") client.connection.close(message.code, message.reason);
    else if (message.op === "export") this.#export(message);
    else client.useCongestion(message.choice);
  }

  #export({ number, label, context, size }: Extract<ToThread, { readonly op: "export" }>): void {
    const { connection } = this.#client;
    const isThere = !this.#client.isSettled && !connection.isClosed;
    const key = isThere ? connection.exportKey(label, context, size) : null;
    this.#outbox.put({ op: "exported", client: this.number, number, key });
  }

  #takeOfStream(message: OfStream): void {
    if (message.op === "open") return this.#open(message.stream, message.isBidi);
    const stream = this.#streams.get(message.stream);
    if (stream === undefined) return; // it has closed meanwhile
    if (message.op === "write") stream.write(message.bytes);
    else if (message.op === "took") stream.onTook(message.bytes);
    else if (message.op === "finish") stream.finish();
    else stream.destroy(message.code, message.isFault);
  }

  #open(id: number, isBidi: boolean): void {
    const stream = this.#client.connection.open(isBidi);
    if (stream !== null) this.#streams.set(id, new ThreadStream(this, stream, id));
    else
      this.#outbox.put({ op: "gone", client: this.number, stream: id, error: "the peer allows no stream" });
  }
}
