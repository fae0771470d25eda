/** In place of a descriptor. */
export const NO_PIPE = -1;

/** For the ends of so many pipes, two words each: the main thread closes those that are left after the worker's end. */
export function newPipeMemory(limit: number): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(limit * 8);
  new Int32Array(memory).fill(NO_PIPE);
  return memory;
}

/** Of a thread of which nothing runs any more. */
export function closeOrphanPipes(memory: SharedArrayBuffer, close: (fd: number) => void): void {
  const ends = new Int32Array(memory);
  for (const fd of ends) if (fd !== NO_PIPE) close(fd);
  ends.fill(NO_PIPE);
}
