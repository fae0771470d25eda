/** How many clients are looked at before it is said. */
const SAMPLE = 512;
/**
 * Of a sample: where more are taken, threads cost more than they save. A client whose way is theirs saves three to four
 * times what another one costs by its detour (docs/adr/0017).
 */
const MOST_TAKEN = 410;

/** Are threads worth it for the clients of one listener? */
export class OffloadWorth {
  #came = 0;
  #taken = 0;

  /** A client has come by a thread, or was served by it alone. False, once a sample: most of them were not for threads. */
  onAccepted(): boolean {
    if (++this.#came < SAMPLE) return true;
    const isWorth = this.#taken <= MOST_TAKEN;
    this.#came = this.#taken = 0;
    return isWorth;
  }

  /** One that had come was taken from its thread. */
  onTaken(): void {
    this.#taken++;
  }
}
