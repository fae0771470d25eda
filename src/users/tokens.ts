import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { UserBook } from "./user-book.ts";

/** 256 random bits as 43 characters. */
export function newToken(): string {
  return randomBytes(32).toString("base64url");
}

/** In the form of one that `newToken` makes. */
export function isToken(text: string): boolean {
  return text.length === 43 && Buffer.from(text, "base64url").length === 32;
}

export interface TokenOwner {
  readonly listener: string;
  readonly userId: string;
}

/** The users of subscription tokens. Looked up by digest, then compared in constant time. */
export class TokenIndex {
  readonly #byDigest = new Map<string, TokenOwner & { readonly token: Buffer }>();

  find(token: string): TokenOwner | null {
    const given = Buffer.from(token);
    const found = this.#byDigest.get(digestOf(given));
    if (found === undefined || found.token.length !== given.length) return null;
    return timingSafeEqual(found.token, given) ? found : null;
  }

  add({ listener }: UserBook, userId: string, token: string): void {
    const bytes = Buffer.from(token);
    this.#byDigest.set(digestOf(bytes), { listener, userId, token: bytes });
  }

  delete(token: string): void {
    this.#byDigest.delete(digestOf(Buffer.from(token)));
  }
}

function digestOf(token: Buffer): string {
  return createHash("sha256").update(token).digest("latin1");
}
