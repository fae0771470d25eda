/** A wire of memory, which takes and gives as little as a test likes; and what a worker's wires share. */
import { EAGAIN, EINTR, type RelayCalls } from "#platform/linux/relay-calls.ts";
import { Readiness } from "#dataplane/workers/wire/readiness.ts";
import type { Wire, WireIo } from "#dataplane/workers/wire/wire.ts";

export const BUFFER_BYTES = 16 * 1024;

export class MemoryWire extends Readiness implements Wire {
  readonly fd = 7;
  override readonly bareSource = 7;
  override readonly bareTarget = 7;
  arrived: Buffer;
  sent: Buffer = Buffer.alloc(0);
  /** What each write takes, or an errno. */
  rooms: number[] = [];
  hasEnded = false;

  constructor(arrived: Buffer) {
    super();
    this.arrived = arrived;
  }

  get pending(): boolean {
    return false;
  }

  read({ calls }: WireIo, size: number): number {
    const bytes = Math.min(size, this.arrived.length);
    calls.buffer.set(this.arrived.subarray(0, bytes));
    this.arrived = this.arrived.subarray(bytes);
    return bytes === 0 && !this.hasEnded ? EAGAIN : bytes;
  }

  available(): number {
    return this.arrived.length > 0 ? this.arrived.length : EAGAIN;
  }

  write({ calls }: WireIo, size: number): number {
    const room = this.rooms.shift() ?? size;
    if (room < 0) return room;
    const bytes = Math.min(room, size);
    this.sent = Buffer.concat([this.sent, calls.buffer.subarray(0, bytes)]);
    return bytes === 0 ? EAGAIN : bytes;
  }

  flush = (): number => 0;
  endWriting = (): number => 0;
  drop(): void {}
}

export const openIo = (): WireIo => ({
  calls: { buffer: new Uint8Array(BUFFER_BYTES) } as unknown as RelayCalls,
  bufferedBytes: 0,
  wakeAtMs: Infinity,
});
/** All that can be read, and what the last read came to. */
export function drain(wire: Wire, io: WireIo, size: number): { got: Buffer; last: number } {
  const got: Buffer[] = [];
  for (;;) {
    const bytes = wire.read(io, size);
    if (bytes === EINTR) continue;
    if (bytes <= 0) return { got: Buffer.concat(got), last: bytes };
    got.push(Buffer.from(io.calls.buffer.subarray(0, bytes)));
  }
}
