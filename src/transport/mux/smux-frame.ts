/** smux version 1 (xtaci). Frame: VER(1)=1 CMD(1) LENGTH(2) STREAM(4), integers little endian, then LENGTH bytes. */
export const VERSION = 1;
export const SYN = 0;
export const FIN = 1;
export const PSH = 2;
export const NOP = 3;
export const HEAD_BYTES = 8;
/** Of a client's first stream: xtaci's keeps 1 to itself. */
export const FIRST_ID = 3;
/** Small enough to let other streams in between, and what other implementations send. */
export const MAX_BODY_BYTES = 32_768;

export function encodeOpen(id: number): Buffer {
  return encodeHead(SYN, id, 0);
}

export function encodeEnd(id: number): Buffer {
  return encodeHead(FIN, id, 0);
}

/** By then all is delivered that was on its way to a client that has left. */
export const GRACE_MS = 1_000;

/**
 * The end of one direction. Others mean both by their end, and pass over the first frame, by which a server of ours knows
 * that the client goes on reading.
 */
export function encodeHalfEnd(id: number): Buffer {
  return Buffer.concat([encodeHead(NOP, id, 0), encodeEnd(id)]);
}

/** Peers do not answer it: it only keeps entries of NAT alive. */
export function encodeKeepAlive(): Buffer {
  return encodeHead(NOP, 0, 0);
}

export function encodeHead(command: number, id: number, length: number): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  writeHead(head, 0, command, id, length);
  return head;
}

export function writeHead(out: Uint8Array, at: number, command: number, id: number, length: number): void {
  out[at] = VERSION;
  out[at + 1] = command;
  out[at + 2] = length;
  out[at + 3] = length >>> 8;
  out[at + 4] = id;
  out[at + 5] = id >>> 8;
  out[at + 6] = id >>> 16;
  out[at + 7] = id >>> 24;
}
