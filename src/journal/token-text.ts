/** A token as its holder has it: `weir_`, its id, and 256 random bits. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/** 12 hexadecimal digits and 43 characters of base64url. The beginning is for people, and for programs that look for secrets. */
const FORM = /^weir_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;

export interface NewToken {
  readonly id: string;
  readonly token: string;
  /** What is kept of it: 256 random bits need no slow hash. */
  readonly hash: Buffer;
}

export function newToken(): NewToken {
  const id = randomBytes(6).toString("hex");
  const token = `weir_${id}_${randomBytes(32).toString("base64url")}`;
  return { id, token, hash: digestOf(token) };
}

/** Null: it has not the form of a token. */
export function idOf(token: string): string | null {
  return FORM.exec(token)?.[1] ?? null;
}

/** In constant time. */
export function matches(token: string, hash: Buffer): boolean {
  return timingSafeEqual(digestOf(token), hash);
}

function digestOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}
