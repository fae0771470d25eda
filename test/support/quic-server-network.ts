/** A QUIC endpoint and its clients, and between them a network inside the test, where datagrams are changed, moved or lost. */
import assert from "node:assert/strict";
import type { DatagramFlow, Endpoint } from "#core/session.ts";
import type { DatagramListener } from "#core/sockets.ts";
import { LOOPBACK_V4, parseIp } from "#net/address/ip.ts";
import { quicLibrary } from "#platform/quic.ts";
import { QuicClient, type QuicClientOptions } from "#transport/quic/client.ts";
import { NewReno } from "#transport/quic/congestion/new-reno.ts";
import type { QuicServerOptions, QuicEndpoint } from "#transport/quic/server/endpoint.ts";
import { ServerSecrets } from "#transport/quic/server/secrets.ts";
import { QuicPorts } from "#transport/quic/server/port.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { openQuicClientTls, openQuicServerTls } from "./quic-tls.ts";

export const SERVER: Endpoint = { ip: LOOPBACK_V4, port: 443 };

/** Sends back all that comes, and the end behind it. */
export function echo(stream: QuicStream): void {
  stream.on("error", () => {});
  if (stream.send !== null) stream.pipe(stream);
  else stream.resume();
}

/** A server that sends back what its streams and datagrams bring. */
export function echoing(): QuicServerOptions {
  const library = quicLibrary();
  assert.ok(library !== null);
  return {
    ciphers: library.ciphers,
    openTls: openQuicServerTls(),
    makeCongestion: () => new NewReno(),
    filter: null,
    closeCode: 0x100,
    onConnection: ({ connection }) => ({
      onStream: echo,
      onDatagram: (payload) => connection.sendDatagram(new Uint8Array(payload)),
    }),
  };
}

export function endpointAt(ip: string, port: number): Endpoint {
  const parsed = parseIp(ip);
  assert.ok(parsed !== null);
  return { ip: parsed, port };
}

/** The socket of a server, and the flows of its clients by their addresses. */
export class ServerNetwork implements AsyncDisposable {
  readonly #secrets = new ServerSecrets();
  ports = new QuicPorts(this.#secrets);
  readonly socket: DatagramListener;
  /** What went to each address. */
  readonly sent = new Map<string, Buffer[]>();
  /** Each datagram of the server; null: it is lost. */
  toClient: (datagram: Buffer, to: Endpoint) => Buffer | null = (datagram) => datagram;
  toServer: (datagram: Buffer, from: Endpoint) => Buffer | null = (datagram) => datagram;
  readonly #clients = new Map<string, (payload: Buffer) => void>();
  readonly #opened: QuicClient[] = [];
  #receiver: (payload: Buffer, from: Endpoint, ecn: number) => void = () => {};
  /** What the socket is to drop. */
  refuses: (datagram: Uint8Array) => boolean = () => false;
  #closing: (() => void)[] = [];
  #close: () => void = () => {};

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#close = resolve;
    this.socket = {
      local: SERVER,
      receive: (on, refuses = () => false) => {
        this.#receiver = on;
        this.refuses = refuses;
      },
      send: (payload, to) => this.#toClient(payload, to),
      sendRun: (payloads, size, to) => {
        for (let at = 0; at < payloads.length; at += size)
          this.#toClient(payloads.subarray(at, at + size), to);
      },
      beforeClose: (on) => void this.#closing.push(on),
      closed: promise,
    };
  }

  /** An endpoint on the socket, which echoes streams and datagrams. */
  serve(options: Partial<QuicServerOptions> = {}): QuicEndpoint {
    return this.ports.open(this.socket, { ...echoing(), ...options });
  }

  /** The server knows nothing any more but its secrets. */
  forget(): void {
    this.ports = new QuicPorts(this.#secrets);
  }

  /** As if it came from there. */
  arrive(datagram: Uint8Array, from: Endpoint): void {
    this.#receiver(Buffer.from(datagram), from, 0);
  }

  #toClient(payload: Uint8Array, to: Endpoint): void {
    const copy = Buffer.from(payload);
    const key = `${to.ip}:${to.port}`;
    this.sent.set(key, [...(this.sent.get(key) ?? []), copy]);
    const datagram = this.toClient(copy, to);
    if (datagram !== null) setImmediate(() => this.#clients.get(key)?.(datagram));
  }

  sentTo({ ip, port }: Endpoint): readonly Buffer[] {
    return this.sent.get(`${ip}:${port}`) ?? [];
  }

  /** A client at this address, which `at` may change. */
  async dial(
    at: { endpoint: Endpoint },
    options: Partial<QuicClientOptions> = {},
    signal = AbortSignal.timeout(10_000),
  ): Promise<QuicClient> {
    const library = quicLibrary();
    assert.ok(library !== null);
    let on: (payload: Buffer) => void = () => {};
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const listen = (): Endpoint => {
      const { endpoint } = at;
      this.#clients.set(`${endpoint.ip}:${endpoint.port}`, (payload) => on(payload));
      return endpoint;
    };
    const flow: DatagramFlow = {
      send: ({ payload }) => {
        const from = listen();
        const datagram = this.toServer(Buffer.from(payload), from);
        if (datagram !== null) setImmediate(() => this.#receiver(datagram, from, 0));
      },
      receive: (take) => void (on = (payload) => take({ payload, destination: { host: null, ...SERVER } })),
      closed,
      async [Symbol.asyncDispose]() {
        resolve();
      },
    };
    const client = await QuicClient.open(
      {
        node: "client",
        flow,
        server: { host: null, ...SERVER },
        filter: null,
        ciphers: library.ciphers,
        openTls: await openQuicClientTls(),
        congestion: new NewReno(),
        onDatagram() {},
        onStream: (stream) => void stream.on("error", () => {}).resume(),
        ...options,
      },
      signal,
    );
    this.#opened.push(client);
    return client;
  }

  close(): void {
    for (const on of this.#closing.splice(0)) on();
    this.#close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#opened) client.close(0);
    this.close();
  }
}

/** What comes back of these bytes. */
export async function echoed(client: QuicClient, bytes: Buffer): Promise<Buffer> {
  const stream = client.connection.open(true);
  assert.ok(stream !== null);
  stream.end(bytes);
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  return Buffer.concat(pieces);
}
