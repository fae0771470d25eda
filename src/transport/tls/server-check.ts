/** Whether a server is the right one, whose handshake the runtime's own libssl has finished. */
import { X509Certificate } from "node:crypto";
import { checkServerIdentity } from "node:tls";
import { AuthError } from "#core/errors.ts";
import type { ServerIdentity } from "#core/tls-recipe.ts";
import type { SslClients } from "#platform/tls.ts";
import { verifyNameOf } from "./client-names.ts";
import type { Belief } from "./native-contexts.ts";
import { checkPin } from "./pin.ts";

/** Certificates whose names were found good; of a server, or of some behind one name. */
const MOST_ACCEPTED = 4;

/** Of one node, in one thread. `object`: address of the library's connection. */
export class ServerCheck {
  readonly #clients: SslClients;
  readonly #options: ServerIdentity;
  readonly #accepted: Buffer[] = [];

  constructor(clients: SslClients, options: ServerIdentity) {
    this.#clients = clients;
    this.#options = options;
  }

  /** What the library is to verify by itself. */
  get belief(): Belief {
    const { fingerprint, skipCertVerify } = this.#options;
    return fingerprint !== null ? "pin" : skipCertVerify ? "any" : "authorities";
  }

  /** Of a handshake that failed. */
  explain(object: bigint, reason: string): Error {
    const refusal = this.belief === "authorities" ? this.#clients.refusalOf(object) : null;
    return refusal === null
      ? new Error(`handshake: ${reason}`)
      : new AuthError(`the certificate is refused: ${refusal}`);
  }

  /**
   * The reason to refuse a handshake that the library has completed: it has verified the chain, but neither the name
   * nor a pin.
   */
  refusal(object: bigint): Error | null {
    const { fingerprint } = this.#options;
    const name = verifyNameOf(this.#options);
    if (fingerprint !== null) {
      const reason = checkPin(this.#clients.chainOf(object), fingerprint, name);
      return reason === null ? null : new AuthError(reason);
    }
    if (this.belief !== "authorities") return null;
    const leaf = this.#clients.certificateOf(object);
    if (leaf === null) return new AuthError("the server showed no certificate");
    if (this.#accepted.some((one) => one.equals(leaf))) return null;
    const fault = checkServerIdentity(name, new X509Certificate(leaf).toLegacyObject());
    if (fault !== undefined) return new AuthError(fault.message, { cause: fault });
    if (this.#accepted.push(leaf) > MOST_ACCEPTED) this.#accepted.shift();
    return null;
  }
}
