/** The tag of a slot that a worker has given out: what the main thread needs to know of the slot's client. */
import type { Switched } from "#core/accepted.ts";
import { itemAt } from "#lib/at.ts";
import { REQUEST_SLOTS } from "./request-memory.ts";

/** RFC 1928 §3: VER METHOD, no authentication required. A worker answers a greeting by it before it has the request. */
export const NO_AUTHENTICATION = Uint8Array.of(5, 0);

/** By number. */
const SWITCHES: readonly (Switched | null)[] = [null, "frames", "stream"];

// LISTENER(8 bits) HAS_METHOD_REPLY(1) SWITCHED(2) REQUEST_SLOT(10) OF_SESSION(1)
const HAS_METHOD_REPLY = 1 << 8;
const SWITCHED_AT = 9;
const REQUEST_SLOT_AT = 11;
/** Of the tag of a stream in a session: its request is SESSION(4) ADDRESS, the slot of the session and where it leads. */
export const OF_SESSION = 1 << 21;
export const SESSION_BYTES = 4;

export function tag(
  listener: number,
  greeted: boolean,
  index: number,
  switched: Switched | null = null,
): number {
  const answered = (greeted ? HAS_METHOD_REPLY : 0) | (SWITCHES.indexOf(switched) << SWITCHED_AT);
  return listener | answered | (index << REQUEST_SLOT_AT);
}

export const listenerOf = (word: number): number => word & 255;

/** So much of the handshake's answer the worker has sent. */
export const repliedBytesOf = (word: number): number =>
  (word & HAS_METHOD_REPLY) === 0 ? 0 : NO_AUTHENTICATION.length;

/** What the worker has switched it to. */
export const switchedOf = (word: number): Switched | null => itemAt(SWITCHES, (word >>> SWITCHED_AT) & 3);

export const requestSlotOf = (word: number): number => (word >>> REQUEST_SLOT_AT) & (REQUEST_SLOTS - 1);
