/** Listening sockets that another process of weir has opened and handed over, until something here listens by them. */
import { closeSync } from "node:fs";
import type { Endpoint } from "#core/session.ts";

export interface ListeningSocket {
  /** What it is listened on for, the same in both processes. */
  readonly key: string;
  readonly fd: number;
  /** Null: it has a path, or its server says it. */
  readonly endpoint: Endpoint | null;
}

export class InheritedSockets {
  readonly #waiting = new Map<string, ListeningSocket>();

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

  /** Closes those that nothing here listens by; answers with what they were for. */
  closeRest(): readonly string[] {
    const keys = [...this.#waiting.keys()];
    for (const { fd } of this.#waiting.values()) closeSync(fd);
    this.#waiting.clear();
    return keys;
  }
}
