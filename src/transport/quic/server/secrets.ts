/** What a server proves to itself by: tokens of clients' addresses, and those of its stateless resets. */
import { createHmac, randomBytes, randomFillSync, timingSafeEqual } from "node:crypto";
import { type Endpoint, endpointText } from "#core/session.ts";
import { Hmac } from "#lib/hmac.ts";
import { CID_BYTES, MAX_CID_BYTES } from "#transport/quic/wire/header.ts";
import { RESET_TOKEN_BYTES } from "#transport/quic/wire/transport-parameters.ts";
import { type Lane, markLane, ONLY_LANE } from "./lanes.ts";

const KEY_BYTES = 32;
const MAC_BYTES = 16;
const TIME_BYTES = 6;
/** A client answers a Retry at once. */
const TOKEN_MS = 10_000;
const POOL_BYTES = 4096;

/** Made once and kept: a listener that is opened anew knows the tokens and the ids of the one before. */
export class ServerSecrets {
  readonly #lane: Lane;
  readonly #tokens = new Hmac(randomBytes(KEY_BYTES));
  readonly #resetKey = randomBytes(KEY_BYTES);
  /** Random bytes that were not given out yet, from `#at` on: asking for eight at a time would cost more than a token. */
  readonly #pool = new Uint8Array(POOL_BYTES);
  #at = POOL_BYTES;

  constructor(lane = ONLY_LANE) {
    this.#lane = lane;
  }

  /** Another one each time, of the lane. */
  readonly makeId = (): Uint8Array => {
    if (this.#at + CID_BYTES > POOL_BYTES) {
      randomFillSync(this.#pool);
      this.#at = 0;
    }
    const id = this.#pool.slice(this.#at, (this.#at += CID_BYTES));
    markLane(id, this.#lane);
    return id;
  };

  /** By which a peer knows that we have lost the connection of this id (RFC 9000 §10.3). */
  resetTokenOf(id: Uint8Array): Uint8Array {
    return createHmac("sha256", this.#resetKey).update(id).digest().subarray(0, RESET_TOKEN_BYTES);
  }

  /**
   * Of a Retry, for a client whose first packet had the destination `original` and whose next one has `retrySource`:
   * EXPIRES(6) ORIGINAL MAC(16). Nothing in it is secret. A flood asks for thousands a second.
   */
  sealToken(client: Endpoint, original: Uint8Array, retrySource: Uint8Array, nowMs: number): Buffer {
    const token = Buffer.alloc(TIME_BYTES + original.length + MAC_BYTES);
    token.writeUIntBE(Math.floor(nowMs + TOKEN_MS), 0, TIME_BYTES);
    token.set(original, TIME_BYTES);
    token.set(this.#macOf(token, client, retrySource), TIME_BYTES + original.length);
    return token;
  }

  /** The destination of the client's first packet; null: it is no token of ours for this client, or too old. */
  openToken(token: Uint8Array, client: Endpoint, retrySource: Uint8Array, nowMs: number): Uint8Array | null {
    const end = token.length - MAC_BYTES;
    if (end < TIME_BYTES || end > TIME_BYTES + MAX_CID_BYTES) return null;
    const said = Buffer.from(token);
    if (!timingSafeEqual(this.#macOf(said, client, retrySource), said.subarray(end))) return null;
    return said.readUIntBE(0, TIME_BYTES) < nowMs ? null : new Uint8Array(said.subarray(TIME_BYTES, end));
  }

  /** Over LENGTH(1) EXPIRES(6) ORIGINAL ADDRESS 0 RETRY-SOURCE. */
  #macOf(token: Buffer, client: Endpoint, retrySource: Uint8Array): Buffer {
    const said = token.subarray(0, token.length - MAC_BYTES);
    const address = Buffer.from(endpointText(client));
    return this.#tokens
      .of([Buffer.of(said.length), said, address, Buffer.of(0), retrySource])
      .subarray(0, MAC_BYTES);
  }
}
