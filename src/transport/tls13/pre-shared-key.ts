/** A session shown in a ClientHello, and the proof that its secret is known (RFC 8446 §4.2.11). */
import { hash } from "node:crypto";
import { TlsFault } from "./alerts.ts";
import type { CipherSuite } from "./cipher-suites.ts";
import { encodeExtension, EXTENSION } from "./extensions.ts";
import { readNumber, type ServerHello } from "./hello-messages.ts";
import { KeySchedule } from "./key-schedule.ts";
import type { Session } from "./sessions.ts";
import type { Transcript } from "./transcript.ts";
import { vector16, vector8 } from "./wire.ts";

/** IDENTITIES(2) TICKET(2+n) AGE(4) BINDERS(2) BINDER(1+n). It stands last in the hello. The binder is zeros still. */
export function encodeSession({ ticket, ageAdd, sinceMs, suite }: Session, nowMs: number): Buffer {
  const age = Buffer.alloc(4);
  age.writeUInt32BE((Math.max(0, Math.floor(nowMs - sinceMs)) + ageAdd) % 2 ** 32);
  const binder = vector16(vector8(Buffer.alloc(suite.hashBytes)));
  return encodeExtension(EXTENSION.preSharedKey, vector16(vector16(ticket), age), binder);
}

/** Writes the binder into a hello that ends with `encodeSession`. `retried`: of the first hello and the HelloRetryRequest; null: it is the first. */
export function bindHello(message: Buffer, { secret, suite }: Session, retried: Transcript | null): void {
  const binderAt = message.length - suite.hashBytes;
  const bound = message.subarray(0, binderAt - BINDER_LENGTHS_BYTES);
  const digest = retried === null ? hash(suite.hash, bound, "buffer") : retried.digest(bound);
  new KeySchedule(suite, secret).binder(digest).copy(message, binderAt);
}

/** Of the list and of the binder in it: they are not bound. */
const BINDER_LENGTHS_BYTES = 3;

/** The session that the server resumes; null: none. Throws `TlsFault` where it resumes what was not offered. */
export function resumedSession(
  { extensions }: ServerHello,
  suite: CipherSuite,
  offered: Session | null,
): Session | null {
  const chosen = extensions.get(EXTENSION.preSharedKey);
  if (chosen === undefined) return null;
  if (offered === null)
    throw new TlsFault("unsupported_extension", "ServerHello: resumes, and nothing was offered");
  if (readNumber(chosen, "pre_shared_key") !== 0 || suite.hash !== offered.suite.hash)
    throw new TlsFault("illegal_parameter", "ServerHello: resumes another session than was offered");
  return offered;
}
