/** One way to the peer: an address of it, and what has gone there (RFC 9000 §8.1, §9). */
import type { Endpoint } from "#core/endpoint.ts";
import { MIN_INITIAL_BYTES } from "./wire/header.ts";

/** What may be sent for each byte that has come from an address which is not shown to be the peer's. */
const AMPLIFICATION = 3;

export class Path {
  /** Null: the dialling side's only way, whose address its owner knows. */
  readonly peer: Endpoint | null;
  /** The peer has shown that it receives what is sent there. */
  isValidated: boolean;
  receivedBytes = 0;
  sentBytes = 0;

  constructor(peer: Endpoint | null, isValidated: boolean) {
    this.peer = peer;
    this.isValidated = isValidated;
  }

  /** How many bytes may go there now. */
  get roomBytes(): number {
    return this.isValidated ? Infinity : AMPLIFICATION * this.receivedBytes - this.sentBytes;
  }

  /** No full datagram may go until more comes from there, or the address is validated. */
  get isHeldBack(): boolean {
    return !this.isValidated && this.roomBytes < MIN_INITIAL_BYTES;
  }
}
