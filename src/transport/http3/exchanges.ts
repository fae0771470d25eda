/** Requests as streams of shared HTTP/3 connections. */
import type { Duplex } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import type { DialContext } from "#core/outbound.ts";
import { CodecStream, type StreamCodec } from "#net/stream/codec-stream.ts";
import type { HttpClient, HttpRequest } from "#transport/http-client.ts";
import { QuicClient, type QuicClientOptions } from "#transport/quic/client.ts";
import { openBidi } from "#transport/quic/open-bidi.ts";
import { type QuicSession, QuicSessions } from "#transport/quic/sessions.ts";
import { varintBytes, WireWriter } from "#transport/quic/wire/writer.ts";
import { DATA_FRAME, discardStream, encodeHeaders, NO_ERROR } from "./request.ts";
import { openControlStream, REQUEST_CANCELLED } from "./request.ts";
import { ResponseReader } from "./response.ts";

/** Servers allow a hundred requests at a time. Those that last must not keep the others of their sessions waiting. */
const MOST_STREAMS = 64;

export interface Http3Options {
  /** Named in errors. */
  readonly node: string;
  readonly timeoutMs: number;
  /** Everything of a connection but what HTTP/3 itself decides. Throws `DialError`. */
  readonly dial: (
    signal: AbortSignal,
  ) => Promise<Omit<QuicClientOptions, "node" | "onStream" | "onDatagram" | "abortCode">>;
}

export class Http3Exchanges implements HttpClient {
  readonly #node: string;
  readonly #sessions: QuicSessions<Http3Session>;

  constructor({ node, timeoutMs, dial }: Http3Options) {
    this.#node = node;
    const open = async (signal: AbortSignal) => Http3Session.open(node, await dial(signal), signal);
    this.#sessions = new QuicSessions({ node, timeoutMs, open });
  }

  async open(request: HttpRequest, { signal }: DialContext): Promise<Duplex> {
    const { method, scheme, authority, path, headers, body } = request;
    const stream = await this.#sessions.open(signal, ({ connection }) =>
      openBidi(connection, this.#node, signal),
    );
    stream.write(
      encodeHeaders([
        [":method", method],
        [":scheme", scheme],
        [":authority", authority],
        [":path", path],
        ...Object.entries(headers),
      ]),
    );
    const exchange = new CodecStream(stream, new BodyCodec());
    exchange.on("error", () => {});
    if (body === null) exchange.end();
    else if (body !== "stream") exchange.end(body);
    return exchange;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#sessions.retire();
  }
}

class Http3Session implements QuicSession {
  readonly #client: QuicClient;

  static async open(
    node: string,
    options: Awaited<ReturnType<Http3Options["dial"]>>,
    signal: AbortSignal,
  ): Promise<Http3Session> {
    const common = { node, abortCode: REQUEST_CANCELLED, onStream: discardStream, onDatagram: () => {} };
    const client = await QuicClient.open({ ...options, ...common }, signal);
    openControlStream(client.connection);
    return new Http3Session(client);
  }

  private constructor(client: QuicClient) {
    this.#client = client;
  }

  get connection(): QuicClient["connection"] {
    return this.#client.connection;
  }

  get isOver(): boolean {
    return this.connection.isClosed;
  }

  get isClosedToMore(): boolean {
    return this.isOver || this.#client.isSilent || this.connection.bidiStreams >= MOST_STREAMS;
  }

  get closed(): Promise<unknown> {
    return this.#client.closed;
  }

  retire(): void {
    this.#client.retire(NO_ERROR);
  }
}

/** The body of a request as DATA frames, and that of the answer out of them. Anything but 200 is the server's refusal. */
class BodyCodec implements StreamCodec {
  #emit: (plain: Buffer) => void = () => {};
  readonly #reader: ResponseReader = new ResponseReader((piece) => {
    this.#checkStatus();
    this.#emit(piece);
  });

  #checkStatus(): void {
    const { status } = this.#reader;
    if (status !== null && status !== 200)
      throw new ProtocolError(`the server answered with status ${status}`);
  }

  seal(plain: Buffer): Buffer {
    if (plain.length === 0) return plain;
    const head = Buffer.allocUnsafe(1 + varintBytes(plain.length));
    const out = new WireWriter(head);
    out.varint(DATA_FRAME);
    out.varint(plain.length);
    return Buffer.concat([head, plain]);
  }

  sealEnd(): null {
    return null;
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    this.#emit = emit;
    this.#reader.push(wire);
    this.#checkStatus();
  }

  openEnd(): void {
    this.#reader.end();
  }
}
