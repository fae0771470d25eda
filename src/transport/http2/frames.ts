/** Frames of HTTP/2 (RFC 9113 §4.1 and §6): LENGTH(3) TYPE(1) FLAGS(1) STREAM(4), big endian. */

export const HEAD_BYTES = 9;
/** What every peer takes, and what we take. */
export const MOST_PAYLOAD_BYTES = 16_384;
/** Of every stream and of the connection, unless a side says otherwise. */
export const FIRST_WINDOW = 65_535;
export const LAST_ID = 0x7fff_ffff;

export const DATA = 0;
export const HEADERS = 1;
export const RST_STREAM = 3;
export const SETTINGS = 4;
export const PUSH_PROMISE = 5;
export const PING = 6;
export const GOAWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;

export const END_STREAM = 0x1;
export const ACK = 0x1;
export const END_HEADERS = 0x4;
export const PADDED = 0x8;
export const PRIORITY = 0x20;

export const NO_ERROR = 0;
export const PROTOCOL_ERROR = 1;
export const REFUSED_STREAM = 7;
export const CANCEL = 8;

export const ENABLE_PUSH = 2;
export const MAX_CONCURRENT_STREAMS = 3;
export const INITIAL_WINDOW_SIZE = 4;

/** What a client says first. */
export const CLIENT_PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

export function writeHead(
  out: Uint8Array,
  at: number,
  type: number,
  flags: number,
  id: number,
  size: number,
): void {
  out[at] = size >>> 16;
  out[at + 1] = size >>> 8;
  out[at + 2] = size;
  out[at + 3] = type;
  out[at + 4] = flags;
  out[at + 5] = id >>> 24;
  out[at + 6] = id >>> 16;
  out[at + 7] = id >>> 8;
  out[at + 8] = id;
}

export function encodeFrame(type: number, flags: number, id: number, payload: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(HEAD_BYTES + payload.length);
  writeHead(out, 0, type, flags, id, payload.length);
  out.set(payload, HEAD_BYTES);
  return out;
}

/** A frame whose payload is one number of 32 bits. */
export function encodeNumber(type: number, id: number, value: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(value);
  return encodeFrame(type, 0, id, payload);
}

export function encodeSettings(settings: readonly (readonly [name: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(6 * settings.length);
  for (const [place, [name, value]] of settings.entries()) {
    payload.writeUInt16BE(name, place * 6);
    payload.writeUInt32BE(value, place * 6 + 2);
  }
  return encodeFrame(SETTINGS, 0, 0, payload);
}

export function encodeGoAway(lastId: number, code: number): Buffer {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(lastId);
  payload.writeUInt32BE(code, 4);
  return encodeFrame(GOAWAY, 0, 0, payload);
}
