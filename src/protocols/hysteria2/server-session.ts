/** One client of a listener: a visitor of a web site until it shows a password, then one whose streams are proxied. */
import { AuthError, DialError } from "#core/errors.ts";
import { guardErrors, type ConnectionEnds } from "#net/listen/accept.ts";
import { readHandshake } from "#net/listen/read-handshake.ts";
import type { AuthenticatedConnection } from "#protocols/managed/authenticated-connection.ts";
import { isMux } from "#protocols/mux/inbound.ts";
import { Http3Server, type Http3Answer, type Http3Request } from "#transport/http3/server.ts";
import { NO_ERROR } from "#transport/http3/request.ts";
import type { Field } from "#transport/http3/qpack.ts";
import type { ServedClient, ServedEvents, ServedStream } from "#transport/quic/server/served.ts";
import type { MuxServerOptions } from "#transport/mux/fields.ts";
import type { Masquerade } from "./masquerade/index.ts";
import { ServerUdp } from "./server-udp.ts";
import { AUTH_PADDING, encodeTcpResponse, padding, parseAddress } from "./wire.ts";
import { STATUS_AUTHENTICATED, takeTcpRequest, TCP_REQUEST } from "./wire.ts";

const REQUEST_TIMEOUT_MS = 30_000;

export interface ServerSessionOptions {
  /** Who shows this password; null: it is none of theirs. */
  readonly admit: (password: Buffer, ends: ConnectionEnds) => AuthenticatedConnection | null;
  readonly masquerade: Masquerade;
  /** What a user may send ahead. */
  readonly windowBytes: number;
  /** Bytes a second; 0: not said. */
  readonly upBytes: number;
  readonly downBytes: number;
  readonly ignoresClientBandwidth: boolean;
  readonly udpMtu: number;
  readonly mux: MuxServerOptions | undefined;
}

export class ServerSession implements ServedEvents {
  readonly #client: ServedClient;
  readonly #options: ServerSessionOptions;
  readonly #http: Http3Server;
  readonly #ends: ConnectionEnds;
  /** Null: it has shown no password. */
  #user: { readonly connection: AuthenticatedConnection; readonly udp: ServerUdp } | null = null;

  constructor(client: ServedClient, options: ServerSessionOptions) {
    this.#client = client;
    this.#options = options;
    this.#ends = {
      get source() {
        return client.peer;
      },
      local: client.local,
    };
    this.#http = new Http3Server(client.connection, {
      answer: (request) => this.#answer(request),
      takeStream: (type) =>
        type === TCP_REQUEST && this.#user !== null ? (stream) => void this.#serve(stream) : null,
    });
  }

  onStream(stream: ServedStream): void {
    this.#http.take(stream);
  }

  onDatagram(payload: Uint8Array): void {
    this.#user?.udp.take(payload);
  }

  async #answer(request: Http3Request): Promise<Http3Answer> {
    const isAsked = request.method === "POST" && request.authority === "hysteria" && request.path === "/auth";
    return isAsked && this.#authenticate(new Map(request.fields))
      ? this.#welcome()
      : this.#options.masquerade(request, this.#ends);
  }

  /** Once is enough. */
  #authenticate(fields: ReadonlyMap<string, string>): boolean {
    if (this.#user !== null) return true;
    const password = Buffer.from(fields.get("hysteria-auth") ?? "", "latin1");
    const connection = this.#admit(password);
    if (connection === null) return false;
    this.#client.settle();
    this.#client.connection.widen(this.#options.windowBytes);
    this.#takeRate(fields.get("hysteria-cc-rx") ?? "");
    this.#open(connection);
    return true;
  }

  #admit(password: Buffer): AuthenticatedConnection | null {
    try {
      return this.#options.admit(password, this.#ends);
    } catch (error) {
      if (error instanceof AuthError) return null; // the user was taken away this moment
      throw error;
    }
  }

  #open(connection: AuthenticatedConnection): void {
    const { connection: quic, closed } = this.#client;
    const { udpMtu } = this.#options;
    const way = {
      get mostBytes() {
        return Math.min(udpMtu, quic.maxDatagramBytes);
      },
      send: (head: Uint8Array, data: Uint8Array) => quic.sendDatagram(head, data),
    };
    const udp = new ServerUdp(way, connection.onFlow);
    const held = connection.hold(() => quic.close(NO_ERROR, ""));
    this.#user = { connection, udp };
    void closed.then(() => {
      held[Symbol.dispose]();
      udp.close();
    });
  }

  /** `said`: what the client takes, bytes a second. */
  #takeRate(said: string): void {
    const { upBytes, ignoresClientBandwidth } = this.#options;
    const takes = /^\d{1,15}$/.test(said) ? Number(said) : 0;
    if (takes === 0 || ignoresClientBandwidth) return;
    const rate = upBytes > 0 ? Math.min(takes, upBytes) : takes;
    this.#client.useCongestion({ kind: "brutal", bytesPerSecond: rate });
  }

  #welcome(): Http3Answer {
    const { downBytes, ignoresClientBandwidth } = this.#options;
    const fields: Field[] = [
      ["hysteria-udp", "true"],
      ["hysteria-cc-rx", ignoresClientBandwidth ? "auto" : String(Math.floor(downBytes))],
      ["hysteria-padding", padding(AUTH_PADDING)],
    ];
    return { status: Number(STATUS_AUTHENTICATED), fields, body: null };
  }

  async #serve(stream: ServedStream): Promise<void> {
    guardErrors(stream);
    try {
      const address = await readHandshake(stream, takeTcpRequest, REQUEST_TIMEOUT_MS);
      const destination = parseAddress(address);
      if (destination === null) return void stream.end(encodeTcpResponse(false, "no such address"));
      const { connection } = this.#user ?? {};
      if (connection === undefined) return void stream.destroy();
      if (!isMux(destination))
        return connection.onStream(stream, destination, (failure) => answer(stream, failure));
      stream.write(encodeTcpResponse(true, ""));
      connection.serveMux(stream, this.#options.mux, connection.onStream);
    } catch {
      stream.destroy(); // it says nothing that could be read, or has gone
    }
  }
}

/** A client learns of a failed dial in one word. */
function answer(stream: ServedStream, failure: Error | null): void {
  if (failure === null) return void stream.write(encodeTcpResponse(true, ""));
  stream.end(encodeTcpResponse(false, failure instanceof DialError ? failure.reason : "failed"));
  stream.resume();
}
