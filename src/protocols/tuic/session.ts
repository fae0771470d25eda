/** One connection to a TUIC server: who we are, then a stream for each connection, and datagrams. */
import type { Duplex } from "node:stream";
import { AuthError, DialError } from "#core/errors.ts";
import type { DatagramFlow, Destination } from "#core/session.ts";
import { answeringLate } from "#core/stream.ts";
import type { OpenedFlows } from "#protocols/shared/opened-flows.ts";
import type { QuicSession } from "#transport/quic/sessions.ts";
import { QuicClient, type QuicClientOptions } from "#transport/quic/client.ts";
import { PeerClosed } from "#transport/quic/connection-end.ts";
import { openBidi } from "#transport/quic/open-bidi.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { newAssociations } from "./associations.ts";
import { CommandBytes } from "./command-bytes.ts";
import {
  encodeAuthenticate,
  encodeConnect,
  encodeDissociate,
  END_REASONS,
  HEARTBEAT,
  MOST_PACKET_BYTES,
  type Packet,
  TOKEN_BYTES,
} from "./wire.ts";

const NO_ERROR = 0;
/** Where packets have streams: so many may be open before further ones are dropped. */
const MOST_OPEN_STREAMS = 2048;

export interface TuicOptions {
  readonly node: string;
  readonly uuid: Uint8Array;
  readonly password: string;
  /** Packets of datagrams go as datagrams of QUIC, or each on a stream of its own. */
  readonly udpMode: "native" | "quic";
  /** The longest packet in a datagram of QUIC. */
  readonly mostPacketBytes: number;
  readonly mostStreams: number;
  readonly heartbeatMs: number;
  readonly onRefused: (why: string) => void;
  readonly quic: Omit<QuicClientOptions, "onDatagram" | "onStream" | "abortCode" | "node">;
}

export class TuicSession implements QuicSession {
  readonly #client: QuicClient;
  readonly #options: TuicOptions;
  readonly #associations: OpenedFlows<Packet>;

  /** Throws `DialError`; nothing is left open then. The server says nothing of uuid and password unless they are wrong. */
  static async open(options: TuicOptions, signal: AbortSignal): Promise<TuicSession> {
    const holder: { session?: TuicSession } = {};
    const client = await QuicClient.open(
      {
        ...options.quic,
        node: options.node,
        abortCode: NO_ERROR,
        onStream: (stream) => holder.session?.onStream(stream),
        onDatagram: (payload) => holder.session?.onPacket(payload),
      },
      signal,
    );
    const session = new TuicSession(client, options);
    holder.session = session;
    try {
      session.#authenticate();
      return session;
    } catch (error) {
      client.close(NO_ERROR);
      throw new DialError("failed", `${options.node}: authentication`, { cause: error });
    }
  }

  private constructor(client: QuicClient, options: TuicOptions) {
    this.#client = client;
    this.#options = options;
    const { connection } = client;
    const isNative = options.udpMode === "native";
    this.#associations = newAssociations({
      get mostBytes() {
        return isNative ? Math.min(options.mostPacketBytes, connection.maxDatagramBytes) : MOST_PACKET_BYTES;
      },
      send: (packet) => (isNative ? connection.sendDatagram(packet) : this.#sendByStream(packet)),
      dissociate: (association) => this.#sendByStream(encodeDissociate(association)),
      ended: () => client.flowEnded(),
    });
    const heartbeat = setInterval(() => {
      if (!this.#isIdle) connection.sendDatagram(HEARTBEAT);
    }, options.heartbeatMs).unref();
    void client.closed.then((error) => {
      clearInterval(heartbeat);
      this.#associations.close();
      const why = error instanceof PeerClosed ? END_REASONS.get(error.closeCode) : undefined;
      if (why !== undefined) options.onRefused(why);
    });
  }

  /** The token is a key of this connection, with the uuid as its label and the password as its context. */
  #authenticate(): void {
    const { uuid, password } = this.#options;
    const token = this.#client.connection.exportKey(uuid, Buffer.from(password), TOKEN_BYTES);
    if (!this.#sendByStream(encodeAuthenticate(uuid, token)))
      throw new AuthError("the server allows no stream of one direction");
    token.fill(0);
  }

  #sendByStream(bytes: Uint8Array): boolean {
    const { connection } = this.#client;
    const stream = connection.openStreams < MOST_OPEN_STREAMS ? connection.open(false) : null;
    stream?.on("error", () => {});
    stream?.end(bytes);
    return stream !== null;
  }

  /** A packet of the server's that has a stream. */
  onStream(stream: QuicStream): void {
    stream.on("error", () => {});
    if (stream.send !== null) return void stream.destroy();
    const bytes = new CommandBytes();
    stream.on("data", (piece: Buffer) => {
      if (!bytes.push(piece)) stream.destroy();
    });
    stream.on("end", () => this.onPacket(bytes.whole));
  }

  onPacket(bytes: Uint8Array): void {
    this.#associations.take(bytes);
  }

  get isOver(): boolean {
    return this.#client.connection.isClosed;
  }

  get isClosedToMore(): boolean {
    const isFull = this.#client.connection.bidiStreams >= this.#options.mostStreams;
    return this.isOver || this.#client.isSilent || isFull;
  }

  get closed(): Promise<unknown> {
    return this.#client.closed;
  }

  /** Open at once: the server says nothing, and resets the stream where it could not reach the destination. */
  async connect(destination: Destination, signal: AbortSignal): Promise<Duplex> {
    const request = encodeConnect(destination);
    const stream = await openBidi(this.#client.connection, this.#options.node, signal);
    stream.write(request);
    return answeringLate(stream);
  }

  associate(): DatagramFlow {
    return this.#associations.open();
  }

  get #isIdle(): boolean {
    return this.#client.connection.bidiStreams === 0 && this.#associations.isEmpty;
  }

  retire(): void {
    this.#client.retire(NO_ERROR, () => !this.#associations.isEmpty);
  }
}
