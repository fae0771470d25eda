/**
 * Packets between two processes with descriptors and the sender's credentials beside them: unix(7), sendmsg(2), cmsg(3).
 * 64-bit layouts.
 */
import type * as Ffi from "node:ffi";
import { int32At, uint32At } from "#lib/at.ts";
import { SystemError, type Libc } from "./libc.ts";
import { addressOf, lowWord, setLong } from "./message-layout.ts";
import { AF_UNIX, MSG_DONTWAIT, MSG_NOSIGNAL, O_CLOEXEC, O_NONBLOCK, SOL_SOCKET } from "./numbers.ts";

const SOCK_SEQPACKET = 5;
const SO_PASSCRED = 16;
const SO_PEERCRED = 17;
const SCM_RIGHTS = 1;
const SCM_CREDENTIALS = 2;
const MSG_CMSG_CLOEXEC = 0x4000_0000;
const MSG_CTRUNC = 8;
const MSG_TRUNC = 0x20;
const EAGAIN = 11;
const EINTR = 4;
const EPIPE = 32;
const ECONNRESET = 104;

/** A longer packet is refused by the sender. */
export const MOST_PACKET_BYTES = 64 * 1024;

// msghdr: NAME*(8) NAMELEN(4) PAD(4) IOV*(8) IOVLEN(8) CONTROL*(8) CONTROLLEN(8) FLAGS(4) PAD(4)
const HEADER_WORDS = 14;
const VECTORS_WORD = 4;
const VECTOR_COUNT_WORD = 6;
const CONTROL_WORD = 8;
const CONTROL_LENGTH_WORD = 10;
const FLAGS_WORD = 12;
// iovec: BASE*(8) LENGTH(8)
const VECTOR_WORDS = 4;
// cmsghdr: LEN(8, header included) LEVEL(4) TYPE(4), then data; the next one begins at a multiple of 8.
const CONTROL_HEADER_BYTES = 16;
const CONTROL_WORDS = 32;
/** ucred: PID(4) UID(4) GID(4) */
const CREDENTIALS_BYTES = 12;

const SIGNATURES = {
  socketpair: { arguments: ["i32", "i32", "i32", "pointer"], return: "i32" },
  sendmsg: { arguments: ["i32", "pointer", "i32"], return: "i64" },
  recvmsg: { arguments: ["i32", "pointer", "i32"], return: "i64" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

export interface Credentials {
  readonly pid: number;
  readonly uid: number;
}

export interface Packet {
  readonly bytes: Buffer;
  /** Of this process from here on, close-on-exec. */
  readonly descriptors: readonly number[];
  /** Of the process that sent it, as the kernel says; null: the receiver has not asked for them. */
  readonly sender: Credentials | null;
}

/** One end of a pair, and what may be done with it by the thread that made this. Throws `SystemError`. */
export class UnixPackets {
  readonly #libc: Libc;
  readonly #library;
  readonly #errno: Int32Array;
  readonly #bytes = Buffer.from(new ArrayBuffer(MOST_PACKET_BYTES));
  readonly #control = new Uint32Array(new ArrayBuffer(CONTROL_WORDS * 4));
  readonly #vector = new Uint32Array(new ArrayBuffer(VECTOR_WORDS * 4));
  readonly #header = new Uint32Array(new ArrayBuffer(HEADER_WORDS * 4));

  constructor(ffi: typeof Ffi, libc: Libc) {
    this.#libc = libc;
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#errno = new Int32Array(ffi.toArrayBuffer(this.#library.functions.__errno_location(), 4, false));
    setLong(this.#vector, 0, addressOf(ffi, this.#bytes));
    setLong(this.#header, VECTORS_WORD, addressOf(ffi, this.#vector));
    setLong(this.#header, VECTOR_COUNT_WORD, 1);
    setLong(this.#header, CONTROL_WORD, addressOf(ffi, this.#control));
  }

  /** Two connected ends, both close-on-exec and non-blocking. */
  pair(): readonly [number, number] {
    const ends = new Int32Array(new ArrayBuffer(8));
    const type = SOCK_SEQPACKET | O_CLOEXEC | O_NONBLOCK;
    if (this.#library.functions.socketpair(AF_UNIX, type, 0, ends) < 0) throw this.#fault("socketpair");
    return [int32At(ends, 0), int32At(ends, 1)];
  }

  /** Who made the other end, as the kernel says. */
  maker(fd: number): Credentials {
    const value = new Uint32Array(CREDENTIALS_BYTES / 4);
    this.#libc.getsockopt(fd, SOL_SOCKET, SO_PEERCRED, new Uint8Array(value.buffer));
    return { pid: uint32At(value, 0), uid: uint32At(value, 1) };
  }

  /** From now on each packet that comes says who has sent it. */
  askForSenders(fd: number): void {
    this.#libc.setsockopt(
      fd,
      SOL_SOCKET,
      SO_PASSCRED,
      new Uint8Array(Uint32Array.of(1).buffer),
      "SO_PASSCRED",
    );
  }

  /** False: the queue is full, nothing was sent. Throws EPIPE where the other end is gone. */
  send(fd: number, bytes: Uint8Array, descriptor: number | null): boolean {
    if (bytes.length > MOST_PACKET_BYTES) throw new RangeError(`a packet of ${bytes.length} bytes`);
    this.#bytes.set(bytes);
    setLong(this.#vector, 2, bytes.length);
    setLong(this.#header, CONTROL_LENGTH_WORD, descriptor === null ? 0 : this.#rights(descriptor));
    this.#header[FLAGS_WORD] = 0;
    for (;;) {
      const sent = Number(this.#library.functions.sendmsg(fd, this.#header, MSG_NOSIGNAL | MSG_DONTWAIT));
      if (sent >= 0) return true;
      const errno = int32At(this.#errno, 0);
      if (errno === EAGAIN) return false;
      if (errno !== EINTR) throw new SystemError("sendmsg", errno);
    }
  }

  /** Null: nothing has come yet. "end": nothing will. */
  receive(fd: number): Packet | "end" | null {
    for (;;) {
      setLong(this.#vector, 2, MOST_PACKET_BYTES);
      setLong(this.#header, CONTROL_LENGTH_WORD, CONTROL_WORDS * 4);
      const length = Number(
        this.#library.functions.recvmsg(fd, this.#header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC),
      );
      if (length > 0) return this.#packet(length);
      if (length === 0) return "end";
      const errno = int32At(this.#errno, 0);
      if (errno === EAGAIN) return null;
      if (errno === ECONNRESET || errno === EPIPE) return "end";
      if (errno !== EINTR) throw new SystemError("recvmsg", errno);
    }
  }

  #rights(descriptor: number): number {
    setLong(this.#control, 0, CONTROL_HEADER_BYTES + 4);
    this.#control[2] = SOL_SOCKET;
    this.#control[3] = SCM_RIGHTS;
    this.#control[4] = descriptor;
    return CONTROL_HEADER_BYTES + 8;
  }

  #packet(length: number): Packet {
    const words = this.#control;
    const end = lowWord(this.#header, CONTROL_LENGTH_WORD);
    const descriptors: number[] = [];
    let sender: Credentials | null = null;
    for (let at = 0; at + CONTROL_HEADER_BYTES <= end;) {
      const bytes = lowWord(words, at / 4);
      if (bytes < CONTROL_HEADER_BYTES || at + bytes > end) break;
      const data = (at + CONTROL_HEADER_BYTES) / 4;
      if (uint32At(words, at / 4 + 2) === SOL_SOCKET) {
        const type = uint32At(words, at / 4 + 3);
        const count = (bytes - CONTROL_HEADER_BYTES) / 4;
        if (type === SCM_RIGHTS) for (let n = 0; n < count; n++) descriptors.push(uint32At(words, data + n));
        if (type === SCM_CREDENTIALS) sender = { pid: uint32At(words, data), uid: uint32At(words, data + 1) };
      }
      at += Math.ceil(bytes / 8) * 8;
    }
    const flags = uint32At(this.#header, FLAGS_WORD);
    if ((flags & (MSG_CTRUNC | MSG_TRUNC)) !== 0) {
      for (const fd of descriptors) this.#libc.close(fd);
      throw new RangeError("a packet was cut");
    }
    return { bytes: Buffer.from(this.#bytes.subarray(0, length)), descriptors, sender };
  }

  #fault(call: string): SystemError {
    return new SystemError(call, int32At(this.#errno, 0));
  }
}
