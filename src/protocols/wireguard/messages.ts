/** Where the fields of WireGuard's messages are (https://www.wireguard.com/papers/wireguard.pdf, 5.4); numbers are little-endian. */
import { KEY_BYTES, MAC_BYTES, TAG_BYTES } from "./sizes.ts";

export const INITIATION = 1;
export const RESPONSE = 2;
export const COOKIE = 3;
export const DATA = 4;

export const TIMESTAMP_BYTES = 12;
export const COOKIE_NONCE_BYTES = 24;

// Initiation: TYPE(4) SENDER(4) EPHEMERAL(32) STATIC(32+16) TIMESTAMP(12+16) MAC1(16) MAC2(16)
export const EPHEMERAL_AT = 8;
export const STATIC_AT = EPHEMERAL_AT + KEY_BYTES;
export const TIMESTAMP_AT = STATIC_AT + KEY_BYTES + TAG_BYTES;
const INITIATION_MACS_AT = TIMESTAMP_AT + TIMESTAMP_BYTES + TAG_BYTES;

// Response: TYPE(4) SENDER(4) RECEIVER(4) EPHEMERAL(32) EMPTY(0+16) MAC1(16) MAC2(16)
export const ANSWER_EPHEMERAL_AT = 12;
export const EMPTY_AT = ANSWER_EPHEMERAL_AT + KEY_BYTES;
const RESPONSE_MACS_AT = EMPTY_AT + TAG_BYTES;

// Cookie: TYPE(4) RECEIVER(4) NONCE(24) COOKIE(16+16)
export const COOKIE_NONCE_AT = 8;
export const COOKIE_AT = COOKIE_NONCE_AT + COOKIE_NONCE_BYTES;

// Data: TYPE(4) RECEIVER(4) COUNTER(8) PACKET(n+16)
export const COUNTER_AT = 8;
export const PACKET_AT = 16;

/** Nothing shorter says anything. */
export const LEAST_MESSAGE_BYTES = PACKET_AT + TAG_BYTES;

const MACS_BYTES = 2 * MAC_BYTES;
const SIZES: Readonly<Record<number, number>> = {
  [INITIATION]: INITIATION_MACS_AT + MACS_BYTES,
  [RESPONSE]: RESPONSE_MACS_AT + MACS_BYTES,
  [COOKIE]: COOKIE_AT + MAC_BYTES + TAG_BYTES,
};

/** Of a message whose bytes 1 to 3 are zero; 0: it is none. */
export function typeOf(message: Buffer): number {
  if (message.length < LEAST_MESSAGE_BYTES) return 0;
  const type = message.readUInt32LE(0);
  return type === DATA || SIZES[type] === message.length ? type : 0;
}

/** A message with its type and all else zero. */
export function blank(type: typeof INITIATION | typeof RESPONSE): Buffer {
  const message = Buffer.alloc(SIZES[type] ?? 0);
  message.writeUInt32LE(type, 0);
  return message;
}

export function senderOf(message: Buffer): number {
  return message.readUInt32LE(4);
}

/** Of an answer to an initiation. */
export function answeredBy(response: Buffer): number {
  return response.readUInt32LE(8);
}

/** Of an initiation or a response. */
export function macsAt(message: Uint8Array): number {
  return message.length - MACS_BYTES;
}
