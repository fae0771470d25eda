/**
 * yamux (hashicorp, spec.md). Frame: VER(1)=0 TYPE(1) FLAGS(2) STREAM(4) LENGTH(4), big endian; only Data has LENGTH bytes
 * behind it.
 */
export const VERSION = 0;
export const HEAD_BYTES = 12;
export const DATA = 0;
export const WINDOW_UPDATE = 1;
export const PING = 2;
export const GO_AWAY = 3;
export const SYN = 1;
export const ACK = 2;
export const FIN = 4;
export const RST = 8;
export const GO_AWAY_NORMAL = 0;
export const GO_AWAY_PROTOCOL = 1;

/** Of a client's first stream. */
export const FIRST_ID = 1;
/** What both sides assume before the first update. */
export const INITIAL_WINDOW = 256 * 1024;
/** What we grant from a stream's first frame on: 256 KiB would bound a stream to one window a round trip. */
export const OUR_WINDOW = 1024 * 1024;
/**
 * Of a session, waiting for readers; beyond, it is not read, and windows that the peer grants us are not heard: two sides that
 * wait for each other's would wait until pings fail. So it is far more than readers that are slow together have in their
 * windows, and only there because of peers that fill all that they may.
 */
export const MAX_HELD_BYTES = 64 * OUR_WINDOW;
export const MAX_WINDOW = 0xffff_ffff;
export const MAX_BODY_BYTES = 64 * 1024;
/** Pings without an answer until the peer counts as gone; one goes out each tick of the session. */
export const MAX_UNANSWERED = 3;

/** A client's, for a new stream. Like the server's answer it brings what the peer may send to our window. */
export function encodeOpen(id: number): Buffer {
  return encodeHead(WINDOW_UPDATE, SYN, id, OUR_WINDOW - INITIAL_WINDOW);
}

/** A server's, for a stream that it takes. */
export function encodeAccepted(id: number): Buffer {
  return encodeHead(WINDOW_UPDATE, ACK, id, OUR_WINDOW - INITIAL_WINDOW);
}

export function encodeEnd(id: number): Buffer {
  return encodeHead(WINDOW_UPDATE, FIN, id, 0);
}

export function encodeReset(id: number): Buffer {
  return encodeHead(WINDOW_UPDATE, RST, id, 0);
}

/** So many bytes more may come. */
export function encodeCredit(id: number, bytes: number): Buffer {
  return encodeHead(WINDOW_UPDATE, 0, id, bytes);
}

export function encodePing(value: number): Buffer {
  return encodeHead(PING, SYN, 0, value);
}

export function encodePingAnswer(value: number): Buffer {
  return encodeHead(PING, ACK, 0, value);
}

/** `isFault`: the peer has broken the protocol. */
export function encodeGoAway(isFault: boolean): Buffer {
  return encodeHead(GO_AWAY, 0, 0, isFault ? GO_AWAY_PROTOCOL : GO_AWAY_NORMAL);
}

export function encodeHead(type: number, flags: number, id: number, length: number): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  writeHead(head, 0, type, flags, id, length);
  return head;
}

export function writeHead(
  out: Uint8Array,
  at: number,
  type: number,
  flags: number,
  id: number,
  length: number,
): void {
  out[at] = VERSION;
  out[at + 1] = type;
  out[at + 2] = flags >>> 8;
  out[at + 3] = flags;
  for (let byte = 0; byte < 4; byte++) {
    out[at + 4 + byte] = id >>> (24 - 8 * byte);
    out[at + 8 + byte] = length >>> (24 - 8 * byte);
  }
}
