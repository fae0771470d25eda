import { createHash, timingSafeEqual } from "node:crypto";

/** A secret that can be compared in constant time, whatever the length of the guess. */
export class Secret {
  readonly #digest: Buffer;
  readonly isEmpty: boolean;

  constructor(secret: string) {
    this.isEmpty = secret === "";
    this.#digest = digest(Buffer.from(secret));
  }

  /** Stands for the secret inside this process; another secret has another one. */
  get mark(): string {
    return this.#digest.toString("base64");
  }

  /** A guess as text, such as a decoded query value. */
  equals(guess: string): boolean {
    return timingSafeEqual(digest(Buffer.from(guess)), this.#digest);
  }

  /**
   * `Authorization: Bearer <secret>`, the scheme in any case, cut at the first space. Header values arrive as one
   * character a byte, so a secret outside ASCII is compared by its bytes.
   */
  opens(authorization: string | undefined): boolean {
    if (authorization === undefined) return false;
    const space = authorization.indexOf(" ");
    if (space < 0 || authorization.slice(0, space).toLowerCase() !== "bearer") return false;
    return timingSafeEqual(digest(Buffer.from(authorization.slice(space + 1), "latin1")), this.#digest);
  }
}

function digest(bytes: Buffer): Buffer {
  return createHash("sha256").update(bytes).digest();
}
