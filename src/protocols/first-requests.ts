/** What users of a listener say first, as threads look at it. */
import { ProtocolError } from "#core/errors.ts";
import type { Layer } from "#core/wire-state.ts";
import type { Destination } from "#core/session.ts";
import type { WrittenUsers } from "#core/written-users.ts";
import { MUX_COOL_DESTINATION, MUX_DESTINATION } from "#transport/mux/preface.ts";

/** Asks for a connection to a destination, and nothing else. */
export interface RequestToConnect {
  readonly destination: Destination;
  /** Its length; the bytes behind it are the tunnel's. */
  readonly size: number;
}

/** How a protocol reads them. */
export interface FirstRequestReader {
  /** What lies over the client's bytes behind its request. */
  readonly layers: readonly Layer[];
  /** What would stand for its user; of less than a key whatever is none. */
  readonly keyOf: (said: Buffer) => string;
  /** Behind the key of a user. Null: it is not whole, or asks for something else. Throws `ProtocolError`. */
  readonly read: (said: Buffer) => RequestToConnect | null;
}

export interface FirstRequest extends RequestToConnect {
  /** As `WrittenUsers` has it. */
  readonly type: string;
  /** An index of `WrittenUsers.names`. */
  readonly user: number;
  readonly layers: readonly Layer[];
}

/** Names that stand for many streams in one connection. */
const MANY = new Set([MUX_DESTINATION.host, MUX_COOL_DESTINATION.host]);

/** The users of one listener. Each is looked up by the whole key, so that timing reveals nothing about single bytes. */
export class FirstRequests {
  readonly #type: string;
  readonly #reader: FirstRequestReader;
  readonly #users: ReadonlyMap<string, number>;

  constructor({ type, keys }: WrittenUsers, reader: FirstRequestReader) {
    this.#type = type;
    this.#reader = reader;
    this.#users = new Map(keys.map((key, user) => [key, user]));
  }

  /** `said`: all that has come. Null: whatever it is, the main thread has to look. */
  read(said: Buffer): FirstRequest | null {
    const user = this.#users.get(this.#reader.keyOf(said));
    const asked = user === undefined ? null : this.#asked(said);
    if (user === undefined || asked === null) return null;
    return { type: this.#type, user, layers: this.#reader.layers, ...asked };
  }

  #asked(said: Buffer): RequestToConnect | null {
    try {
      const asked = this.#reader.read(said);
      return asked === null || MANY.has(asked.destination.host) ? null : asked;
    } catch (error) {
      if (error instanceof ProtocolError) return null; // the listener's own parser refuses it with its reason
      throw error;
    }
  }
}
