/** Frames of several streams in one session, as a protocol and the relay workers write them. Integers big endian. */

/** The command of padding. */
export const WASTE = 0;
/** The command of data. */
export const PSH = 2;

export const HEADER_BYTES = 7;
/** Of one frame. */
export const MAX_DATA = 0xffff;

const NO_DATA = Buffer.alloc(0);

// Frame: COMMAND(1) STREAM(4) LENGTH(2) DATA.
export function encodeFrame(command: number, streamId: number, data: Uint8Array = NO_DATA): Buffer {
  const out = Buffer.allocUnsafe(HEADER_BYTES + data.length);
  writeHeader(out, 0, command, streamId, data.length);
  out.set(data, HEADER_BYTES);
  return out;
}

/** Of a frame whose data has `length` bytes. */
export function writeHeader(
  out: Uint8Array,
  at: number,
  command: number,
  streamId: number,
  length: number,
): void {
  out[at] = command;
  out[at + 1] = streamId >>> 24;
  out[at + 2] = streamId >>> 16;
  out[at + 3] = streamId >>> 8;
  out[at + 4] = streamId;
  out[at + 5] = length >>> 8;
  out[at + 6] = length;
}

/** Payload as PSH frames, cut into equal parts where one frame cannot hold it; copied once, into `memory` where it is large enough. */
export function encodeData(streamId: number, data: Buffer, memory: Buffer | null = null): Buffer {
  const count = Math.max(1, Math.ceil(data.length / MAX_DATA));
  const partBytes = Math.ceil(data.length / count);
  const size = data.length + count * HEADER_BYTES;
  const out = memory !== null && memory.length >= size ? memory.subarray(0, size) : Buffer.allocUnsafe(size);
  let end = 0;
  for (let from = 0; from < data.length || from === 0; from += partBytes || 1) {
    const part = data.subarray(from, from + partBytes);
    writeHeader(out, end, PSH, streamId, part.length);
    out.set(part, end + HEADER_BYTES);
    end += HEADER_BYTES + part.length;
  }
  return out;
}

/** A frame of padding: `size` zeros behind the header. */
export function encodeWaste(size: number): Buffer {
  const out = Buffer.alloc(HEADER_BYTES + size);
  writeHeader(out, 0, WASTE, 0, size);
  return out;
}
