/** The dialling side of TLS by the runtime's own libssl, on the descriptor of a kernel socket. */
import { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { checkServerIdentity } from "node:tls";
import { AuthError, DialError, messageOf } from "#core/errors.ts";
import { descriptorOf } from "#core/handover.ts";
import type { Log } from "#core/log.ts";
import { REPLACED } from "#core/sockets.ts";
import type { TlsClient, TlsClientOptions, TlsOpened, TlsOpening } from "#core/tls.ts";
import { BAD_CERTIFICATE, type NativeTls, type SslHandle } from "#platform/tls.ts";
import { sniOf, verifyNameOf } from "./client-options.ts";
import { finishOpening, refuseIfAborted } from "./client-handshake.ts";
import type { ClientContexts } from "./native-contexts.ts";
import { canGoNative } from "./native-server.ts";
import { NativeTlsStream } from "./native-stream.ts";
import { checkPin } from "./pin.ts";

/** Certificates whose names were found good; of a server, or of some behind one name. */
const MOST_ACCEPTED = 4;

export interface NativeClientEnv {
  readonly native: NativeTls;
  readonly contexts: ClientContexts;
  /** For streams that are no kernel sockets, and where the library refuses the settings. */
  readonly byNode: TlsClient;
  readonly log: Log;
}

/** Of one node. What it needs of the library is made when it dials first, and shared with nodes that are alike. */
export class NativeClient implements TlsClient {
  readonly #native: NativeTls;
  readonly #options: TlsClientOptions;
  readonly #env: NativeClientEnv;
  readonly #serverName: string;
  readonly #alpn: Uint8Array;
  /** Null: the library refuses the settings, and `node:tls` is left to say so. */
  #context: SslHandle | null | undefined;
  readonly #accepted: Buffer[] = [];

  constructor(options: TlsClientOptions, env: NativeClientEnv) {
    this.#native = env.native;
    this.#options = options;
    this.#env = env;
    this.#serverName = sniOf(options);
    this.#alpn = wireOf(options.alpn);
  }

  open(stream: Duplex, opening: TlsOpening): Promise<TlsOpened> {
    if (this.#context === undefined) this.#context = this.#makeContext();
    return this.#context !== null && canGoNative(stream)
      ? this.#openSocket(stream, opening)
      : this.#env.byNode.open(stream, opening);
  }

  #makeContext(): SslHandle | null {
    const { fingerprint } = this.#options;
    const belief = this.#believes() ? "authorities" : fingerprint === null ? "anybody" : "pin";
    try {
      return this.#env.contexts.of(this.#options, belief);
    } catch (error) {
      this.#env.log.debug(() => `TLS to ${this.#options.serverName} by node:tls: ${messageOf(error)}`);
      return null;
    }
  }

  /** Of the socket nothing was read; it is destroyed, and its descriptor lives on in the stream. */
  async #openSocket(socket: Socket, { signal, bypassable: exact = false }: TlsOpening): Promise<TlsOpened> {
    const { serverName } = this.#options;
    refuseIfAborted(socket, serverName, signal);
    const fd = this.#native.calls.duplicate(descriptorOf(socket));
    const stream = fd < 0 ? "no descriptor is left" : this.#openStream(fd, exact, socket.remoteAddress);
    if (typeof stream === "string") {
      socket.destroy();
      throw new DialError("failed", `TLS to ${serverName}: ${stream}`);
    }
    socket.emit(REPLACED, stream);
    socket.destroy();
    let alpn: string | null = null;
    const refusal = (): Error | null => {
      alpn = this.#native.contexts.alpnOf(stream.object); // only now it is sure that there is the object
      const refused = this.#refusal(stream.object);
      if (refused !== null) this.#native.sendAlert(stream.object, BAD_CERTIFICATE);
      return refused;
    };
    const opened = finishOpening({ stream, below: stream, event: "secure", refusal }, serverName, signal);
    stream.begin();
    await opened;
    return { stream, alpn, bypass: exact ? stream : null };
  }

  /** Or why there is none. */
  #openStream(fd: number, exact: boolean, remoteAddress: string | undefined): NativeTlsStream | string {
    const { calls, ssl, clients } = this.#native;
    const connection = { fd, serverName: this.#serverName, alpn: this.#alpn, readAhead: !exact };
    const object = clients.connect(this.#context as SslHandle, connection);
    const explain = (reason: string): Error => this.#explain(object, reason);
    try {
      if (object !== 0n)
        return new NativeTlsStream(this.#native, { fd, ssl: object, exact, remoteAddress, explain });
    } catch {
      ssl.free(object); // the event loop cannot watch it
    }
    calls.close(fd);
    return "no memory is left";
  }

  /** Of a handshake that failed. */
  #explain(object: bigint, reason: string): Error {
    const refusal = this.#believes() ? this.#native.clients.refusalOf(object) : null;
    return refusal === null
      ? new Error(`handshake: ${reason}`)
      : new AuthError(`the certificate is refused: ${refusal}`);
  }

  #believes(): boolean {
    return this.#options.fingerprint === null && !this.#options.skipCertVerify;
  }

  /**
   * The reason to refuse a handshake that the library has completed: it has verified the chain, but neither the name
   * nor a pin.
   */
  #refusal(object: bigint): Error | null {
    const { clients } = this.#native;
    const { fingerprint } = this.#options;
    const name = verifyNameOf(this.#options);
    if (fingerprint !== null) {
      const reason = checkPin(clients.chainOf(object), fingerprint, name);
      return reason === null ? null : new AuthError(reason);
    }
    if (!this.#believes()) return null;
    const leaf = clients.certificateOf(object);
    if (leaf === null) return new AuthError("the server showed no certificate");
    if (this.#accepted.some((one) => one.equals(leaf))) return null;
    const fault = checkServerIdentity(name, new X509Certificate(leaf).toLegacyObject());
    if (fault !== undefined) return new AuthError(fault.message, { cause: fault });
    if (this.#accepted.push(leaf) > MOST_ACCEPTED) this.#accepted.shift();
    return null;
  }
}

/** Each with its length in front (RFC 7301 §3.1). */
function wireOf(protocols: readonly string[]): Uint8Array {
  return Buffer.concat(
    protocols.flatMap((name) => [Buffer.from([Buffer.byteLength(name)]), Buffer.from(name)]),
  );
}
