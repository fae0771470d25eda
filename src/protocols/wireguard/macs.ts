/** The two MACs of a handshake message, and the cookie that a server under load asks to see again (whitepaper, 5.3, 5.4.4, 5.4.7). */
import { timingSafeEqual } from "node:crypto";
import { hchacha20 } from "#protocols/crypto/hchacha20.ts";
import * as at from "./messages.ts";
import { hash, mac, open } from "./primitives.ts";
import { MAC_BYTES } from "./sizes.ts";

const MAC1_LABEL = "mac1----";
const COOKIE_LABEL = "cookie--";
/** The server takes it for two minutes; some of them pass on the way. */
const COOKIE_MS = 115_000;
/** XChaCha20-Poly1305: so much of the nonce makes the key. */
const KEY_NONCE_BYTES = 16;

/** Signs what goes to one partner. */
export class OutgoingMacs {
  readonly #key: Buffer;
  readonly #cookieKey: Buffer;
  /** Of the message that no cookie has answered yet; null: there is none. */
  #last: Buffer | null = null;
  #cookie: { readonly bytes: Buffer; readonly untilMs: number } | null = null;

  constructor(partner: Uint8Array) {
    this.#key = hash(MAC1_LABEL, partner);
    this.#cookieKey = hash(COOKIE_LABEL, partner);
  }

  sign(message: Buffer, nowMs: number): void {
    const start = at.macsAt(message);
    this.#last = mac(this.#key, message.subarray(0, start));
    message.set(this.#last, start);
    if (this.#cookie === null || this.#cookie.untilMs <= nowMs) return;
    message.set(mac(this.#cookie.bytes, message.subarray(0, start + MAC_BYTES)), start + MAC_BYTES);
  }

  /** What comes as an answer to the message that was signed last; anything else is ignored. */
  takeCookie(message: Buffer, nowMs: number): void {
    if (this.#last === null) return;
    const nonce = message.subarray(at.COOKIE_NONCE_AT, at.COOKIE_AT);
    const key = hchacha20(this.#cookieKey, nonce.subarray(0, KEY_NONCE_BYTES));
    const rest = Buffer.concat([Buffer.alloc(4), nonce.subarray(KEY_NONCE_BYTES)]);
    const bytes = open(key, message.subarray(at.COOKIE_AT), this.#last, rest);
    if (bytes === null) return;
    this.#last = null;
    this.#cookie = { bytes, untilMs: nowMs + COOKIE_MS };
  }
}

/** Tells messages of those who know our public key from any others, at little cost. */
export class IncomingMacs {
  readonly #key: Buffer;

  constructor(own: Uint8Array) {
    this.#key = hash(MAC1_LABEL, own);
  }

  isRight(message: Buffer): boolean {
    const start = at.macsAt(message);
    return timingSafeEqual(
      mac(this.#key, message.subarray(0, start)),
      message.subarray(start, start + MAC_BYTES),
    );
  }
}
