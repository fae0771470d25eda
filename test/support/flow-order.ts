/** What a flow is to move; the origin reads it from the first line or the path. */
export interface Order {
  readonly device: number;
  readonly target: number;
  /** Bytes; what is sent first is one of them. */
  readonly upload: number;
  readonly download: number;
}

const BLOCK = Buffer.alloc(64 * 1024, "traffic");

/** So many bytes, in blocks. */
export function* pieces(size: number): Generator<Buffer> {
  for (let left = size; left > 0; left -= BLOCK.length) yield BLOCK.subarray(0, Math.min(left, BLOCK.length));
}
