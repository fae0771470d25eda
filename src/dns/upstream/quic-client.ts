/** A connection of QUIC to a DNS server, on which every question has a stream of its own. */
import { asDialError, DialError, ProtocolError } from "#core/errors.ts";
import type { NameserverOptions } from "#core/dns-options.ts";
import type { TlsClientOptions } from "#core/tls.ts";
import { Cubic } from "#transport/quic/congestion/cubic.ts";
import { QuicClient } from "#transport/quic/client.ts";
import { type QuicClientCrypto, quicClientCrypto } from "#transport/quic/native-tls.ts";
import { openBidi } from "#transport/quic/open-bidi.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { resolveServer } from "./dial.ts";
import type { UpstreamEnv } from "./upstream.ts";
import { abortion } from "./wire.ts";

/** While questions wait: how often it is looked whether the server answers at all. */
const LOOK_MS = 250;
/** Answers are small; a server that sends more waits until it is read. */
const WINDOWS = { maxData: 1024 * 1024, maxStreamDataBidiLocal: 128 * 1024, maxStreamDataUni: 64 * 1024 };

/** What the protocol inside is called, and the codes by which it says that all is well or a question is given up. */
export interface QuicProtocol {
  readonly alpn: string;
  readonly noError: number;
  readonly cancelled: number;
}

/** What the connections to one server share: its sessions are in `crypto`. */
export interface QuicServer {
  readonly server: NameserverOptions;
  readonly env: UpstreamEnv;
  readonly protocol: QuicProtocol;
  /** Null: this runtime has no QUIC. */
  readonly crypto: QuicClientCrypto | null;
  /** The first questions of a connection that goes on with a session are asked by 0-RTT (RFC 9250 §4.5). */
  readonly startsEarly: boolean;
}

export function quicServer(
  server: NameserverOptions,
  env: UpstreamEnv,
  protocol: QuicProtocol,
  startsEarly: boolean,
): QuicServer {
  const options: TlsClientOptions = {
    where: server.text,
    serverName: server.host,
    nameCertVerify: server.nameCertVerify,
    skipCertVerify: server.skipCertVerify,
    fingerprint: null,
    alpn: [protocol.alpn],
    minVersion: "TLSv1.3",
    carriesHttp2: false,
    keyPair: null,
    trust: env.trust,
    clientFingerprint: "",
    reality: null,
    ech: null,
  };
  return { server, env, protocol, crypto: quicClientCrypto(options, startsEarly), startsEarly };
}

export class QuicQuestions {
  readonly #client: QuicClient;
  readonly #text: string;
  readonly #noError: number;
  #pending = 0;
  #look: NodeJS.Timeout | null = null;
  #isRetired = false;

  /** Throws `DialError`; nothing is left open then. */
  static async open(
    { server, env, crypto, protocol, startsEarly }: QuicServer,
    signal: AbortSignal,
  ): Promise<QuicQuestions> {
    if (crypto === null) throw new DialError("unsupported", `${server.text}: this runtime has no QUIC`);
    const { dialer } = env.exit();
    const to = { ip: await resolveServer(server, env, signal), port: server.port };
    const destination = { host: null, ...to };
    const flow = await (dialer.associateWith?.(to) ??
      dialer.associate(destination, { signal, metadata: null }));
    const client = await QuicClient.open(
      {
        ...crypto,
        node: server.text,
        flow,
        startsEarly,
        server: destination,
        filter: null,
        congestion: new Cubic(),
        abortCode: protocol.cancelled,
        numbers: { ...WINDOWS, maxStreamsBidi: 0 },
        onDatagram: () => {},
        onStream: discard,
      },
      signal,
    );
    return new QuicQuestions(client, server.text, protocol.noError);
  }

  private constructor(client: QuicClient, text: string, noError: number) {
    this.#client = client;
    this.#text = text;
    this.#noError = noError;
  }

  get connection(): QuicClient["connection"] {
    return this.#client.connection;
  }

  /** Gives a stream to `use`, and ends it behind that. What the stream ends by is a `DialError`. */
  async ask<T>(use: (stream: QuicStream) => Promise<T>, signal: AbortSignal): Promise<T> {
    this.#begin();
    const waiting = abortion(signal);
    let stream: QuicStream | null = null;
    try {
      stream = await openBidi(this.connection, this.#text, signal);
      stream.on("error", () => {}); // `use` hears of it
      return await Promise.race([use(stream), waiting.aborted]);
    } catch (error) {
      if (error instanceof ProtocolError || signal.aborted) throw error;
      throw asDialError(error, this.#text);
    } finally {
      waiting.release();
      stream?.destroy();
      this.#end();
    }
  }

  #begin(): void {
    this.#pending++;
    this.#look ??= setInterval(() => this.#lookForSilence(), LOOK_MS).unref();
  }

  #end(): void {
    if (--this.#pending > 0) return;
    if (this.#look !== null) clearInterval(this.#look);
    this.#look = null;
    if (this.#isRetired) this.close();
  }

  #lookForSilence(): void {
    if (this.#client.isSilent) this.close(); // questions go to a new connection
  }

  /** It ends with the last question. */
  retire(): void {
    this.#isRetired = true;
    if (this.#pending === 0) this.close();
  }

  close(code: number = this.#noError): void {
    this.#client.close(code);
  }
}

/** The server's own streams say nothing that we need. */
function discard(stream: QuicStream): void {
  stream.on("error", () => {});
  stream.resume();
}
