/** What all transports do with the bytes of a query and its answer. */
import { randomInt } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import { questionEndOf } from "#dns/packet.ts";
import { FLAG, HEADER_BYTES, OPCODE_MASK, RCODE_MASK } from "#dns/types.ts";
import { byteAt } from "#lib/at.ts";

export function randomId(): number {
  return randomInt(0x10000);
}

export function idOf(message: Uint8Array): number {
  return (byteAt(message, 0) << 8) | byteAt(message, 1);
}

export function withId(message: Uint8Array, id: number): Buffer {
  const copy = Buffer.from(message);
  copy.writeUInt16BE(id, 0);
  return copy;
}

/** A failure of which nothing but the header came, as many servers write FORMERR, NOTIMP and REFUSED. */
export function isBareRefusal(query: Uint8Array, answer: Uint8Array): boolean {
  if (answer.length < HEADER_BYTES || idOf(answer) !== idOf(query)) return false;
  const flags = (byteAt(answer, 2) << 8) | byteAt(answer, 3);
  const isFailure = (flags & FLAG.QR) !== 0 && (flags & RCODE_MASK) !== 0;
  return isFailure && byteAt(answer, 4) === 0 && byteAt(answer, 5) === 0;
}

/** Throws `ProtocolError` unless this is a response to exactly this question; letters may differ in case. */
export function checkAnswers(query: Uint8Array, answer: Uint8Array): void {
  const end = questionEndOf(answer);
  const flags = (byteAt(answer, 2) << 8) | byteAt(answer, 3);
  const asked = (byteAt(query, 2) << 8) | byteAt(query, 3);
  if ((flags & FLAG.QR) === 0) throw new ProtocolError("DNS server sent a query");
  if ((flags & OPCODE_MASK) !== (asked & OPCODE_MASK))
    throw new ProtocolError("DNS answer has another opcode");
  if (end !== questionEndOf(query)) throw new ProtocolError("DNS answer to another question");
  for (let at = HEADER_BYTES; at < end; at++) {
    const [a, b] = [byteAt(query, at), byteAt(answer, at)];
    // Label lengths are below 0x40; type and class behind the name must be equal to the bit.
    const same = a === b || (at < end - 4 && lower(a) === lower(b));
    if (!same) throw new ProtocolError("DNS answer to another question");
  }
}

function lower(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte + 32 : byte;
}

/** Rejects when the signal aborts, at once where it already has; `release` must be called when the wait is over. */
export function abortion(signal: AbortSignal): { readonly aborted: Promise<never>; release(): void } {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason instanceof Error ? signal.reason : new Error("aborted"));
  promise.catch(() => {}); // the race reports it; a lost race must not be an unhandled rejection
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return { aborted: promise, release: () => signal.removeEventListener("abort", abort) };
}
