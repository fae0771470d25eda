import { Duplex } from "node:stream";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { TlsAccepted } from "#core/tls.ts";
import type { NativeTls } from "#platform/tls.ts";
import type { Bypass } from "#core/tls-bypass.ts";
import type { Handshake } from "./server-handshake.ts";

type Resumed = Pick<TlsAccepted, "stream" | "bypass">;

/** A client whose handshake a worker has done, and whose socket it keeps until the stream is looked at. */
export class KeptTlsClient implements TlsAccepted {
  readonly alpn: string | null;
  readonly serverName: string | null;
  readonly mayBypass: boolean;
  readonly connection: AcceptedConnection;
  readonly #resume: () => Handshake;
  #resumed: Resumed | null = null;

  /** `resume` takes it from the worker; it may throw. */
  constructor(
    connection: AcceptedConnection,
    { alpn, serverName, mayBypass }: Pick<KeptTlsClient, "alpn" | "serverName" | "mayBypass">,
    resume: () => Handshake,
  ) {
    this.connection = connection;
    this.alpn = alpn;
    this.serverName = serverName;
    this.mayBypass = mayBypass;
    this.#resume = resume;
  }

  get stream(): Duplex {
    return this.#open().stream;
  }

  get bypass(): Bypass | null {
    return this.#open().bypass;
  }

  #open(): Resumed {
    this.#resumed ??= this.#take();
    return this.#resumed;
  }

  /** Where nothing could be had of it, a stream that is over. */
  #take(): Resumed {
    try {
      const handshake = this.#resume();
      const { stream } = handshake;
      stream.on("error", () => stream.destroy());
      return { stream, bypass: handshake.facts().bypass };
    } catch {
      this.connection.destroy();
      return { stream: new Duplex().destroy(), bypass: null };
    }
  }
}

/** `object` is the library's, of a handshake that is done. `exact`: TLS may be left behind. */
export function keptClient(
  connection: AcceptedConnection,
  { contexts, object, exact }: { contexts: NativeTls["contexts"]; object: bigint; exact: boolean },
  resume: () => Handshake,
): KeptTlsClient {
  const serverName = contexts.serverNameOf(object)?.toLowerCase() || null;
  const mayBypass = exact && contexts.versionOf(object) === "TLSv1.3";
  return new KeptTlsClient(connection, { alpn: contexts.alpnOf(object), serverName, mayBypass }, resume);
}
