import type { Duplex } from "node:stream";
import type { WireStart } from "#core/wire-state.ts";

/** What lies over the socket of a client that a worker has, behind a handshake that it has done. */
export interface KeptCover {
  /** The client's wire with this below it, where `start` is what lies over the socket's payload. */
  over(start: WireStart): WireStart;
  /** Does something that frees all else which lies over the socket. */
  spared(free: () => void): void;
  /** Of a client that is kept: frees all of it, and closes the socket. */
  destroy(): void;
}

/** What the client's owner does around it. */
export interface KeptOwner {
  /** The thread waits for what becomes of it. */
  readonly isKept: boolean;
  /** So much of the payload was understood, and is not to be read again. */
  readonly handshakeBytes: number;
  /** The thread has nothing of the client any more. A descriptor of our own; -1: there is none. */
  leave(): number;
  onContinued(stream: Duplex): void;
}
