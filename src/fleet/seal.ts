/**
 * Subscription tokens in the database: looked up by hash, and sealed with a key that comes from `svc.secret`, which the
 * database never has. So a copy of the database opens no subscription, and every node shows every link.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { FleetError } from "./errors.ts";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

export class TokenSeal {
  readonly #key: Buffer;
  /** The same for everybody with this secret, and tells nothing of it. */
  readonly proof: Buffer;

  constructor(secret: string) {
    this.#key = Buffer.from(hkdfSync("sha256", secret, "", "weir fleet tokens", 32));
    this.proof = createHmac("sha256", this.#key).update("weir fleet proof").digest();
  }

  /** Opens only for the same user. */
  seal(userId: string, token: string): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES }).setAAD(
      Buffer.from(userId),
    );
    const body = Buffer.concat([cipher.update(token, "utf8"), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), body]);
  }

  /** Throws `FleetError` where it was sealed with another secret, for another user, or was changed. */
  open(userId: string, sealed: Uint8Array): string {
    const bytes = Buffer.from(sealed);
    const nonce = bytes.subarray(0, NONCE_BYTES);
    try {
      const cipher = createDecipheriv(CIPHER, this.#key, nonce, { authTagLength: TAG_BYTES })
        .setAAD(Buffer.from(userId))
        .setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
      const body = cipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES));
      return Buffer.concat([body, cipher.final()]).toString();
    } catch (error) {
      throw new FleetError(`the token of user ${userId} was sealed with another svc.secret`, {
        cause: error,
      });
    }
  }
}

export function hashOfToken(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
