/** Checks what a peer tells of marks against what was sent (RFC 9000 §13.4.2.1): of the application's packets, alone marked. */
import type { WireReader } from "#transport/quic/wire/reader.ts";
import { EcnCounts } from "./ecn-counts.ts";
import type { EcnMarking } from "./ecn-marking.ts";

export class EcnCheck {
  /** Packets with ECT(0) that the acknowledgement in hand is the first to tell of. */
  marked = 0;
  readonly #told = new EcnCounts();
  readonly #tells = new EcnCounts();

  /** The counts at the end of an ACK frame. Throws `QuicFault`. */
  read(reader: WireReader): void {
    this.#tells.read(reader);
  }

  /**
   * The acknowledgement told of the newest packet so far; `hasEcn`: it had counts. Answers how many packets have met
   * congestion since the last one, 0 where that is not to be believed.
   */
  check(hasEcn: boolean, marking: EcnMarking): number {
    const [told, tells] = [this.#told, this.#tells];
    const congested = tells.ce - told.ce;
    const isRight = hasEcn ? tells.follows(told, this.marked) : this.marked === 0;
    if (hasEcn) told.take(tells);
    if (!isRight) marking.fail();
    else if (this.marked > 0) marking.succeed();
    return hasEcn && marking.isCapable ? congested : 0;
  }
}
