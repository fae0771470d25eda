/** What a server proves to itself by: tokens of clients' addresses, and those of its stateless resets. */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { type Endpoint, endpointText } from "#core/session.ts";
import { RESET_TOKEN_BYTES } from "#transport/quic/wire/transport-parameters.ts";

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const TIME_BYTES = 6;
/** A client answers a Retry at once. */
const TOKEN_MS = 10_000;

/** Made once and kept: a listener that is opened anew knows the tokens and the ids of the one before. */
export class ServerSecrets {
  readonly #tokenKey = randomBytes(KEY_BYTES);
  readonly #resetKey = randomBytes(KEY_BYTES);

  /** By which a peer knows that we have lost the connection of this id (RFC 9000 §10.3). */
  resetTokenOf(id: Uint8Array): Uint8Array {
    return createHmac("sha256", this.#resetKey).update(id).digest().subarray(0, RESET_TOKEN_BYTES);
  }

  /**
   * Of a Retry, for a client whose first packet had the destination `original` and whose next one has `retrySource`:
   * NONCE(12) SEALED(EXPIRES(6) ORIGINAL) TAG(16)
   */
  sealToken(client: Endpoint, original: Uint8Array, retrySource: Uint8Array, nowMs: number): Buffer {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv("aes-256-gcm", this.#tokenKey, nonce);
    cipher.setAAD(boundTo(client, retrySource));
    const time = Buffer.alloc(TIME_BYTES);
    time.writeUIntBE(Math.floor(nowMs + TOKEN_MS), 0, TIME_BYTES);
    const sealed = [cipher.update(time), cipher.update(original), cipher.final()];
    return Buffer.concat([nonce, ...sealed, cipher.getAuthTag()]);
  }

  /** The destination of the client's first packet; null: it is no token of ours for this client, or too old. */
  openToken(token: Uint8Array, client: Endpoint, retrySource: Uint8Array, nowMs: number): Uint8Array | null {
    if (token.length < NONCE_BYTES + TIME_BYTES + TAG_BYTES) return null;
    const end = token.length - TAG_BYTES;
    const cipher = createDecipheriv("aes-256-gcm", this.#tokenKey, token.subarray(0, NONCE_BYTES));
    cipher.setAAD(boundTo(client, retrySource));
    cipher.setAuthTag(token.subarray(end));
    const plain = cipher.update(token.subarray(NONCE_BYTES, end));
    try {
      cipher.final();
    } catch {
      return null; // anybody's bytes, or those for another client
    }
    return plain.readUIntBE(0, TIME_BYTES) < nowMs ? null : new Uint8Array(plain.subarray(TIME_BYTES));
  }
}

function boundTo(client: Endpoint, retrySource: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(endpointText(client)), Buffer.of(0), retrySource]);
}
