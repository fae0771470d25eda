/** Listening sockets and TUNs that another process of weir has opened and handed over, until something here takes them. */
import { closeSync } from "node:fs";
import type { Endpoint } from "#core/session.ts";

export interface ListeningSocket {
  /** What it is listened on for, the same in both processes. */
  readonly key: string;
  readonly fd: number;
  /** Null: it has a path, or its server says it. */
  readonly endpoint: Endpoint | null;
  /** What has to be known of it besides. Absent: nothing. */
  readonly detail?: string | null;
}

/** What the process that has what `key` names remembers of it, for the other one. */
export interface HandedState {
  readonly key: string;
  readonly bytes: Uint8Array;
}

/** Of one key: far more than the largest table of flows takes. */
const MOST_STATE_BYTES = 8 << 20;

export class InheritedSockets {
  readonly #waiting = new Map<string, ListeningSocket>();
  readonly #states = new Map<string, Uint8Array[]>();
  readonly #over = Promise.withResolvers<void>();

  /** Settles when nothing is open any more in the process that had them. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  end(): void {
    this.#over.resolve();
  }

  get keys(): readonly string[] {
    return [...this.#waiting.keys()];
  }

  /** The descriptor is owned from here on. */
  add(socket: ListeningSocket): void {
    this.#waiting.set(socket.key, socket);
  }

  /** Null: there is none. The caller owns the descriptor. */
  take(key: string): ListeningSocket | null {
    const found = this.#waiting.get(key) ?? null;
    this.#waiting.delete(key);
    return found;
  }

  /** A piece of what the other process remembers of what `key` names. Throws `RangeError` where it is too much. */
  addState(key: string, piece: Uint8Array): void {
    const pieces = this.#states.get(key) ?? [];
    pieces.push(piece);
    if (pieces.reduce((sum, { length }) => sum + length, 0) > MOST_STATE_BYTES)
      throw new RangeError(`${key}: more than ${MOST_STATE_BYTES} bytes`);
    this.#states.set(key, pieces);
  }

  /** Null: there is none. */
  takeState(key: string): Uint8Array | null {
    const pieces = this.#states.get(key);
    this.#states.delete(key);
    return pieces === undefined ? null : Buffer.concat(pieces);
  }

  /** Closes those that nothing here listens by; answers with what they were for. */
  closeRest(): readonly string[] {
    const keys = [...this.#waiting.keys()];
    for (const { fd } of this.#waiting.values()) closeSync(fd);
    this.#waiting.clear();
    return keys;
  }
}
