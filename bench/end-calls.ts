/** What the ends of a measurement ask of the kernel beyond what weir does, so that they cost next to nothing. */
import { createCipheriv } from "node:crypto";
import type * as Ffi from "node:ffi";
import { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { WORDS } from "#platform/linux/machine-words.ts";
import { EPOLL_CTL_ADD, MSG_DONTWAIT } from "#platform/linux/numbers.ts";
import { DATA_WORD, EVENT_WORDS, READABLE, WRITABLE } from "#platform/linux/relay-calls.ts";
import { ffiFor } from "#platform/ffi.ts";

const MSG_TRUNC = 0x20;
const MFD_CLOEXEC = 1;
const EPOLL_CTL_MOD = 3;

const SIGNATURES = {
  memfd_create: { arguments: ["pointer", "u32"], return: "i32" },
  sendfile: { arguments: WORDS[4], return: "i32" },
  recv: { arguments: WORDS[4], return: "i32" },
  epoll_ctl: { arguments: WORDS[4], return: "i32" },
} as const;

/** What is sent over and over: fifteen records. No power of two, so a piece in the wrong place shows. */
export const CONTENT = createCipheriv("aes-128-ctr", Buffer.alloc(16), Buffer.alloc(16)).update(
  Buffer.alloc(15 * 16_384),
);

/** How much a check compares, each way. */
export const CHECKED_BYTES = 8 * 1024 * 1024;

export class EndCalls extends AcceptCalls {
  readonly #library;
  readonly #offset = new BigInt64Array(1);
  readonly #offsetAt: bigint;
  readonly #event = new Uint32Array(EVENT_WORDS);
  readonly #eventAt: bigint;

  constructor(ffi: typeof Ffi) {
    super(ffi);
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#offsetAt = ffi.getRawPointer(this.#offset);
    this.#eventAt = ffi.getRawPointer(this.#event);
  }

  #watch(epoll: number, operation: number, fd: number, events: number): void {
    this.#event[0] = events;
    this.#event[DATA_WORD] = fd;
    this.#library.functions.epoll_ctl(BigInt(epoll), BigInt(operation), BigInt(fd), this.#eventAt);
  }

  /** Says the descriptor as often as it has bytes or connections to take. */
  watchBytes(epoll: number, fd: number): void {
    this.#watch(epoll, EPOLL_CTL_ADD, fd, READABLE);
  }

  /** From now on as often as it has room for bytes. */
  watchRoom(epoll: number, fd: number): void {
    this.#watch(epoll, EPOLL_CTL_MOD, fd, WRITABLE);
  }

  /** A file in memory. */
  openFile(): number {
    return this.answer(this.#library.functions.memfd_create(Buffer.from("bench\0"), MFD_CLOEXEC));
  }

  /** The kernel lends the socket the file's pages, which are not to change: nothing is copied. */
  sendFile(fd: number, file: number, at: number, size: number): number {
    this.#offset[0] = BigInt(at);
    return this.answer(
      this.#library.functions.sendfile(BigInt(fd), BigInt(file), this.#offsetAt, BigInt(size)),
    );
  }

  /** Takes bytes off the socket without looking at them (tcp(7), MSG_TRUNC). */
  swallow(fd: number): number {
    return this.answer(
      this.#library.functions.recv(BigInt(fd), 0n, 1n << 30n, BigInt(MSG_TRUNC | MSG_DONTWAIT)),
    );
  }
}

export function openEndCalls(): EndCalls {
  return new EndCalls(ffiFor("this measurement"));
}

/** Is this what lies there, where `CONTENT` goes on without end? */
export function isContent(bytes: Uint8Array, at: number): boolean {
  for (let done = 0; done < bytes.length;) {
    const from = (at + done) % CONTENT.length;
    const size = Math.min(CONTENT.length - from, bytes.length - done);
    if (CONTENT.compare(bytes, done, done + size, from, from + size) !== 0) return false;
    done += size;
  }
  return true;
}
