/** One way to the peer: an address of it, and what has gone there (RFC 9000 §8.1, §9). */
import type { Endpoint } from "#core/endpoint.ts";
import { EcnMarking } from "./recovery/ecn-marking.ts";
import { MIN_INITIAL_BYTES } from "./wire/header.ts";

/** What may be sent for each byte that has come from an address which is not shown to be the peer's. */
const AMPLIFICATION = 3;

export class Path {
  /** Null: the dialling side's only way, whose address its owner knows. */
  readonly peer: Endpoint | null;
  /** The peer has shown that it receives what is sent there. */
  isValidated: boolean;
  /** Whether packets for it are marked, and how that is found out. */
  readonly marking: EcnMarking;
  /** The datagrams that are being sent have ECT(0). */
  isMarked = false;
  receivedBytes = 0;
  sentBytes = 0;

  /** `usesEcn`: the socket can. */
  constructor(peer: Endpoint | null, isValidated: boolean, usesEcn = false) {
    this.peer = peer;
    this.marking = new EcnMarking(usesEcn);
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
