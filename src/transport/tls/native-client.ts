/** The dialling side of TLS by the runtime's own libssl, on the descriptor of a kernel socket. */
import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { DialError, messageOf } from "#core/errors.ts";
import { descriptorOf } from "#core/handover.ts";
import type { Log } from "#core/log.ts";
import { REPLACED } from "#core/sockets.ts";
import type { TlsClient, TlsClientOptions, TlsOpened, TlsOpening } from "#core/tls.ts";
import type { LibraryTls } from "#core/tls-recipe.ts";
import { BAD_CERTIFICATE, type NativeTls, type SslHandle, type SslTickets } from "#platform/tls.ts";
import { sniOf } from "./client-names.ts";
import { finishOpening, refuseIfAborted } from "./client-handshake.ts";
import type { ClientContexts } from "./native-contexts.ts";
import { canGoNative } from "./native-server.ts";
import { NativeTlsStream } from "./native-stream.ts";
import { ServerCheck } from "./server-check.ts";

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
  readonly #check: ServerCheck;
  readonly #serverName: string;
  readonly #alpn: Uint8Array;
  /** Null: each server has to show the chain in which the pinned certificate is. */
  readonly #tickets: SslTickets | null;
  /** Null: the library refuses the settings, and `node:tls` is left to say so. */
  #context: SslHandle | null | undefined;
  #recipe: LibraryTls | null = null;

  constructor(options: TlsClientOptions, env: NativeClientEnv) {
    this.#native = env.native;
    this.#options = options;
    this.#env = env;
    this.#check = new ServerCheck(env.native.clients, options);
    this.#serverName = sniOf(options);
    this.#alpn = wireOf(options.alpn);
    this.#tickets = this.#check.belief === "pin" ? null : env.native.clients.makeTickets();
  }

  open(stream: Duplex, opening: TlsOpening): Promise<TlsOpened> {
    return this.#contextOnce() !== null && canGoNative(stream)
      ? this.#openSocket(stream, opening)
      : this.#env.byNode.open(stream, opening);
  }

  recipe(): LibraryTls | null {
    const context = this.#contextOnce();
    return context === null ? null : (this.#recipe ??= this.#makeRecipe(context));
  }

  #makeRecipe({ address: context }: SslHandle): LibraryTls {
    const { serverName, nameCertVerify, fingerprint, skipCertVerify } = this.#options;
    const server = { serverName, nameCertVerify, fingerprint, skipCertVerify };
    const alpn = Uint8Array.from(this.#alpn);
    return { kind: "tls", id: randomUUID(), context, sni: this.#serverName, alpn, server };
  }

  #contextOnce(): SslHandle | null {
    if (this.#context === undefined) this.#context = this.#makeContext();
    return this.#context;
  }

  #makeContext(): SslHandle | null {
    try {
      return this.#env.contexts.of(this.#options, this.#check.belief);
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
    const { contexts } = this.#native;
    let alpn: string | null = null;
    let isOlder = false;
    const refusal = (): Error | null => {
      alpn = contexts.alpnOf(stream.object); // only now it is sure that there is the object
      isOlder = contexts.versionOf(stream.object) !== "TLSv1.3";
      const refused = this.#check.refusal(stream.object);
      if (refused === null) stream.keepTickets(this.#tickets);
      else this.#native.sendAlert(stream.object, BAD_CERTIFICATE);
      return refused;
    };
    const opened = finishOpening({ stream, below: stream, event: "secure", refusal }, serverName, signal);
    stream.begin();
    await opened;
    return { stream, alpn, bypass: exact ? stream : null, isOlder };
  }

  /** Or why there is none. */
  #openStream(fd: number, exact: boolean, remoteAddress: string | undefined): NativeTlsStream | string {
    const { calls, ssl, clients } = this.#native;
    const connection = {
      fd,
      serverName: this.#serverName,
      alpn: this.#alpn,
      readAhead: !exact,
      tickets: this.#tickets,
    };
    const object = clients.connect(this.#context as SslHandle, connection);
    const explain = (reason: string): Error => this.#check.explain(object, reason);
    try {
      if (object !== 0n)
        return new NativeTlsStream(this.#native, { fd, ssl: object, exact, remoteAddress, explain });
    } catch {
      ssl.free(object); // the event loop cannot watch it
    }
    calls.close(fd);
    return "no memory is left";
  }
}

/** Each with its length in front (RFC 7301 §3.1). */
export function wireOf(protocols: readonly string[]): Uint8Array {
  return Buffer.concat(
    protocols.flatMap((name) => [Buffer.from([Buffer.byteLength(name)]), Buffer.from(name)]),
  );
}
