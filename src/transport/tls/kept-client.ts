import { Duplex } from "node:stream";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { TlsAccepted } from "#core/tls.ts";
import type { NativeTls } from "#platform/tls.ts";
import type { Bypass } from "#core/tls-bypass.ts";
import type { Handshake } from "./server-handshake.ts";

type Resumed = Pick<TlsAccepted, "stream" | "bypass">;
type Facts = Pick<KeptTlsClient, "alpn" | "serverName">;

interface KeptOptions {
  readonly contexts: NativeTls["contexts"];
  /** TLS may be left behind. */
  readonly exact: boolean;
}

const UNKNOWN: Facts = { alpn: null, serverName: null };

/**
 * A client whose handshake a worker has done, and whose socket it keeps until the stream is looked at. Nearly all go on
 * without a look at what was agreed: that is to be had until the worker is told to dial, and from a stream that was taken.
 */
export class KeptTlsClient implements TlsAccepted {
  readonly connection: AcceptedConnection;
  readonly #options: KeptOptions;
  readonly #resume: () => Handshake;
  #facts: Facts | null = null;
  #mayBypass: boolean | null = null;
  #resumed: Resumed | null = null;

  /** `resume` takes it from the worker; it may throw. */
  constructor(connection: AcceptedConnection, options: KeptOptions, resume: () => Handshake) {
    this.connection = connection;
    this.#options = options;
    this.#resume = resume;
  }

  get alpn(): string | null {
    return this.#look().alpn;
  }

  get serverName(): string | null {
    return this.#look().serverName;
  }

  get mayBypass(): boolean {
    this.#mayBypass ??= this.#lookAtVersion();
    return this.#mayBypass === true;
  }

  get stream(): Duplex {
    return this.#open().stream;
  }

  get bypass(): Bypass | null {
    return this.#open().bypass;
  }

  #look(): Facts {
    if (this.#facts !== null) return this.#facts;
    const object = this.connection.tls?.object;
    if (object === undefined) return UNKNOWN;
    const { contexts } = this.#options;
    const serverName = contexts.serverNameOf(object)?.toLowerCase() || null;
    this.#facts = { alpn: contexts.alpnOf(object), serverName };
    return this.#facts;
  }

  /** Null: it cannot be asked for. */
  #lookAtVersion(): boolean | null {
    const { contexts, exact } = this.#options;
    const object = this.connection.tls?.object;
    return object === undefined ? null : exact && contexts.versionOf(object) === "TLSv1.3";
  }

  #open(): Resumed {
    this.#resumed ??= this.#take();
    return this.#resumed;
  }

  /** Where nothing could be had of it, a stream that is over. */
  #take(): Resumed {
    this.#look();
    this.#mayBypass ??= this.#lookAtVersion();
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
