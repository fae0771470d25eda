/** How a server says that it answers the hidden hello (RFC 9849 §7.2). */
import { timingSafeEqual } from "node:crypto";
import type { CipherSuite } from "#transport/tls13/cipher-suites.ts";
import { EXTENSION, readExtensions } from "#transport/tls13/extensions.ts";
import { expandLabel, hkdfExtract } from "#transport/tls13/key-schedule.ts";
import type { Transcript } from "#transport/tls13/transcript.ts";
import { WireReader } from "#transport/tls13/wire.ts";

export const CONFIRMATION_BYTES = 8;
/** In a ServerHello with its header: the last bytes of the random. */
const IN_RANDOM_AT = 4 + 2 + 32 - CONFIRMATION_BYTES;

/** Where the eight bytes lie in a ServerHello; of a HelloRetryRequest in its extension, null: it has none. */
export function confirmationIn(message: Buffer, isRetry: boolean): Buffer | null {
  if (!isRetry) return message.subarray(IN_RANDOM_AT, IN_RANDOM_AT + CONFIRMATION_BYTES);
  const reader = new WireReader(message.subarray(4), "HelloRetryRequest");
  reader.bytes(2 + 32);
  reader.vector8();
  reader.bytes(2 + 1);
  const body = readExtensions(reader, "HelloRetryRequest").get(EXTENSION.encryptedClientHello);
  return body?.length === CONFIRMATION_BYTES ? body : null;
}

export interface Confirmed {
  readonly suite: CipherSuite;
  /** Of the hidden hello. */
  readonly random: Buffer;
  /** From the hidden hello to what is before the message. */
  readonly transcript: Transcript;
  readonly isRetry: boolean;
}

/** What belongs into the message, a ServerHello or HelloRetryRequest with a place for it. */
export function makeConfirmation(message: Buffer, confirmed: Confirmed): Buffer {
  const { suite, random, transcript, isRetry } = confirmed;
  const blank = Buffer.from(message);
  confirmationIn(blank, isRetry)?.fill(0);
  const secret = hkdfExtract(suite.hash, Buffer.alloc(suite.hashBytes), random);
  const label = isRetry ? "hrr ech accept confirmation" : "ech accept confirmation";
  return expandLabel(suite.hash, secret, label, transcript.digest(blank), CONFIRMATION_BYTES);
}

/** Does the server answer the hidden hello? */
export function isConfirmed(message: Buffer, confirmed: Confirmed): boolean {
  const shown = confirmationIn(message, confirmed.isRetry);
  return shown !== null && timingSafeEqual(shown, makeConfirmation(message, confirmed));
}
