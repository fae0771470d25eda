/** Memory in place of the kernel, for wires that seal by libcrypto. */
import assert from "node:assert/strict";
import { CipherMemory } from "#dataplane/workers/wire/cipher-memory.ts";
import { BUFFER_BYTES, EAGAIN } from "#platform/linux/relay-calls.ts";

export const PLAIN_BYTES = BUFFER_BYTES;
/** The thread's buffer of a worker is somewhat longer, too. */
const TAILROOM_BYTES = 64;
let shared: CipherMemory | null = null;

/** One for all wires of a process, as for all of a worker: nothing in it outlasts a call. */
export function cipherMemory(): CipherMemory {
  return (shared ??=
    CipherMemory.open(new Uint8Array(PLAIN_BYTES + TAILROOM_BYTES)) ?? assert.fail("no libcrypto by FFI"));
}

/** A socket of memory: `arrived` is what it has, `sent` what was written to it. */
export class MemorySocket {
  arrived: Buffer = Buffer.alloc(0);
  sent: Buffer = Buffer.alloc(0);
  ended = false;
  /** The other way. */
  hasEnded = false;
  /** How much it takes before it says EAGAIN. */
  room = Infinity;
  readonly memory = cipherMemory();

  receiveAt(_fd: number, address: bigint, size: number): number {
    const bytes = Math.min(size, this.arrived.length);
    if (bytes === 0) return this.ended ? 0 : EAGAIN;
    this.memory.wire.set(this.arrived.subarray(0, bytes), Number(address - this.memory.wireAt));
    this.arrived = this.arrived.subarray(bytes);
    return bytes;
  }

  sendAt(_fd: number, address: bigint, size: number): number {
    const bytes = Math.min(size, this.room);
    if (bytes === 0) return EAGAIN;
    const { scratch, scratchAt, wire, wireAt } = this.memory;
    const isShort = address >= scratchAt && address < scratchAt + BigInt(scratch.length);
    const at = Number(address - (isShort ? scratchAt : wireAt));
    this.sent = Buffer.concat([this.sent, (isShort ? scratch : wire).subarray(at, at + bytes)]);
    this.room -= bytes;
    return bytes;
  }

  endWriting(): number {
    this.hasEnded = true;
    return 0;
  }

  available(): number {
    return this.arrived.length;
  }
}
