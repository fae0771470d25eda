/** Frames of several streams in one session, as a protocol and the relay workers write them. Integers big endian. */

/** The command of data. */
export const PSH = 2;

export const HEADER_BYTES = 7;

const NO_DATA = Buffer.alloc(0);

// Frame: COMMAND(1) STREAM(4) LENGTH(2) DATA.
export function encodeFrame(command: number, streamId: number, data: Uint8Array = NO_DATA): Buffer {
  const out = Buffer.allocUnsafe(HEADER_BYTES + data.length);
  headerInto(out, 0, command, streamId, data.length);
  out.set(data, HEADER_BYTES);
  return out;
}

/** Writes the header of a frame whose data has `length` bytes. */
export function headerInto(out: Buffer, at: number, command: number, streamId: number, length: number): void {
  out[at] = command;
  out.writeUInt32BE(streamId, at + 1);
  out.writeUInt16BE(length, at + 5);
}
