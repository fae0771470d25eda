/** What a worker decides by, as the main thread posts it: one immutable version at a time. */
import type { Endpoint } from "#core/session.ts";
import type { WrittenUsers } from "#core/written-users.ts";
import type { RuleTablesData } from "#router/tables/decide.ts";
import type { DecisionTables, ListenerFacts } from "#router/tables/decision-tables.ts";

/** In the shared word: no version is in force, and the main thread decides. */
export const NO_VERSION = 0;

export interface DecidedListener extends ListenerFacts {
  /** Where all its clients go: they are asked for nothing. Null: each asks. */
  readonly destination: Endpoint | null;
  /** Whose requests are understood, of a listener of users; null: it is none. */
  readonly users: WrittenUsers | null;
}

export interface DecisionData extends Omit<DecisionTables, "rules"> {
  readonly version: number;
  /** Null: those of the version before, which the worker has. */
  readonly rules: RuleTablesData | null;
  /** By number of the listener; null: the main thread decides. */
  readonly listeners: readonly (DecidedListener | null)[];
}

/** What clients speak that are no users, by its index in shared memory: API spelling, as in `InboundInfo.type`. */
export const REQUEST_TYPES: readonly string[] = ["Socks4", "Socks5", "HTTPS", "Tunnel", "Redir", "TProxy"];

// Who accounts for a connection that a worker has decided, in `DecisionMemory.decided`.
/** The worker has not decided it, or there is none. */
export const NOT_DECIDED = 0;
/** The worker will report its end, unless the main thread joins it before. */
export const CONNECTED = 1;
/** The worker has reported its end. */
export const SERVED_ALONE = 2;
/** The main thread knows it, as one that it has decided itself. */
export const JOINED = 3;
/** It is decided and not connected yet. What comes back to this machine is recognised from here on. */
export const DIALLING = 4;

/** The word that says which version is in force, for all workers together. */
export class VersionWord {
  readonly memory: SharedArrayBuffer;
  readonly #word: Int32Array;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(4)) {
    this.memory = memory;
    this.#word = new Int32Array(memory);
  }

  get present(): number {
    return Atomics.load(this.#word, 0);
  }

  set present(version: number) {
    Atomics.store(this.#word, 0, version);
  }
}
