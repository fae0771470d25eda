/** By what one thread answers the clients of a listener with REALITY. */
import { type AdmissionRules, type Admitted, admit } from "./admission.ts";
import type { DestFlight } from "./dest-flight.ts";
import type { OwnCertificate } from "./own-certificate.ts";
import { type PreparedShare, prepareShare, type ShapedFlight, shapeFlight } from "./server-handshake.ts";

export interface AnswersEnv {
  readonly rules: AdmissionRules;
  readonly certificate: OwnCertificate;
  readonly nowMs: () => number;
  /** Of the records that dest sends to such a client once it has finished, with their headers, as far as they are known. */
  readonly later: (admitted: Admitted) => readonly number[];
}

export class Answers {
  readonly #env: AnswersEnv;
  /** The key exchange that dest chose last; null: none yet. */
  #group: number | null = null;

  constructor(env: AnswersEnv) {
    this.#env = env;
  }

  /** Null: it is dest's business. */
  admit(hello: Buffer): Admitted | null {
    const { rules, nowMs } = this.#env;
    return admit(hello, rules, nowMs());
  }

  /** While dest makes its answer. Null: what dest will choose is not known. */
  prepare(admitted: Admitted): PreparedShare | null {
    return this.#group === null ? null : prepareShare(admitted, this.#group);
  }

  /** Null: dest's handshake cannot be imitated. */
  shape(admitted: Admitted, flight: DestFlight, prepared: PreparedShare | null): ShapedFlight | null {
    try {
      const shaped = shapeFlight(admitted, flight, this.#env.certificate, prepared);
      this.#group = shaped?.group ?? this.#group;
      return shaped;
    } catch {
      return null; // shares or a ServerHello that are none: dest has the answer
    }
  }

  later(admitted: Admitted): readonly number[] {
    return this.#env.later(admitted);
  }
}
