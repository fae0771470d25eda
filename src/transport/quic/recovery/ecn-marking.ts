/**
 * Are packets of one path marked ECT(0)? Those of a test are, then all, as soon as the peer has told that marks arrive; none
 * where they do not, or change on the way, or the peer does not tell (RFC 9000 §13.4.2, A.4).
 */

/** Packets of a test. */
const TESTED = 10;

export class EcnMarking {
  #state: "testing" | "waiting" | "capable" | "failed";
  #sent = 0;
  #lost = 0;

  /** `isPossible` false: none is ever marked. */
  constructor(isPossible: boolean) {
    this.#state = isPossible ? "testing" : "failed";
  }

  /** The next packets are to be marked. */
  get isOn(): boolean {
    return this.#state === "testing" || this.#state === "capable";
  }

  /** The peer has told that marks arrive. */
  get isCapable(): boolean {
    return this.#state === "capable";
  }

  /** A marked packet went. */
  onSent(): void {
    if (this.#state === "testing" && ++this.#sent >= TESTED) this.#state = "waiting";
  }

  /** A marked packet was lost: where all of them are, it may be that the path drops what is marked. */
  onLost(): void {
    if (this.#state === "waiting" && ++this.#lost >= TESTED) this.fail();
  }

  /** Marked packets were acknowledged, and the peer has counted them. */
  succeed(): void {
    if (this.#state !== "failed") this.#state = "capable";
  }

  /** Nothing is heard any more: perhaps a path drops what is marked now. */
  onSilence(): void {
    if (this.#state !== "capable") return;
    this.#state = "testing";
    this.#sent = this.#lost = 0;
  }

  fail(): void {
    this.#state = "failed";
  }
}
