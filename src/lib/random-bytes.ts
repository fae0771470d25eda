import { randomBytes, randomFillSync } from "node:crypto";

const POOL_BYTES = 4096;
/** Longer ones are drawn by themselves. */
const MOST_POOLED = 64;

const pool = Buffer.alloc(POOL_BYTES);
let at = POOL_BYTES;

/**
 * Random bytes for salts and keys of connections, of which each is given out once. The runtime's own function asks the
 * library each time, which takes twice as long, and more on a busy machine. In memory of their own: a copy for another thread
 * takes no more.
 */
export function drawBytes(size: number): Buffer {
  if (size > MOST_POOLED) return randomBytes(size);
  if (at + size > POOL_BYTES) {
    randomFillSync(pool);
    at = 0;
  }
  const drawn = Buffer.alloc(size); // not `allocUnsafe`, whose memory is shared
  pool.copy(drawn, 0, at, at + size);
  pool.fill(0, at, at + size);
  at += size;
  return drawn;
}
