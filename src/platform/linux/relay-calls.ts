/**
 * The calls of a thread that moves bytes between sockets, by `node:ffi`. Each answers with a count, or with the errno as
 * a negative number: an exception a would-block would cost more than the call. 64-bit layouts. Every socket is
 * non-blocking, and the runtime ignores SIGPIPE.
 */
import type * as Ffi from "node:ffi";
import { NumberWords, WORDS } from "./machine-words.ts";
import {
  EPOLL_CTL_ADD,
  F_DUPFD_CLOEXEC,
  MSG_DONTWAIT,
  MSG_PEEK,
  O_CLOEXEC,
  O_NONBLOCK,
  SOL_SOCKET,
} from "./numbers.ts";
import { int32At, uint32At } from "#lib/at.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

export const EAGAIN = -11;
export const EINTR = -4;
export const EPIPE = -32;
export const ENOTCONN = -107;

/** epoll(7). */
export const READABLE = 0x1;
export const WRITABLE = 0x4;
export const FAULT = 0x8;
export const HANGUP = 0x10;
export const PEER_ENDED = 0x2000;
const EDGE_TRIGGERED = 0x8000_0000;

/** One system call carries no more. */
export const BUFFER_BYTES = 256 * 1024;
/** Memory behind the buffer, for headers in a whole one that moves up. */
const TAILROOM_BYTES = 64;
export const PIPE_BYTES = 1024 * 1024;
const BATCH = 256;
const BATCH_WORD = BigInt(BATCH);
// struct epoll_event: EVENTS(4) DATA(8), packed on x86-64 only; elsewhere EVENTS(4) PAD(4) DATA(8)
export const [EVENT_WORDS, DATA_WORD] = process.arch === "x64" ? [3, 1] : [4, 2];

export const ADD = BigInt(EPOLL_CTL_ADD);
const MODIFY = 3n;
const F_SETPIPE_SZ = 1031;
const FIONREAD = 0x541bn;
const SIOCOUTQ = 0x5411n;
const SHUT_WR = 1n;
const SOCKET_LEVEL = BigInt(SOL_SOCKET);
const SO_LINGER = 13n;
const SO_ERROR = 4n;
const IPPROTO_TCP = 6n;
const TCP_NODELAY = 1n;
export const PEEK = BigInt(MSG_DONTWAIT | MSG_PEEK);
const SPLICE_FLAGS = 1n | 2n; // MOVE, NONBLOCK; MORE would hold back the last piece of a turn

const SIGNATURES = {
  epoll_create1: { arguments: ["i32"], return: "i32" },
  epoll_ctl: { arguments: WORDS[4], return: "i32" },
  epoll_wait: { arguments: WORDS[4], return: "i32" },
  eventfd: { arguments: ["u32", "i32"], return: "i32" },
  read: { arguments: WORDS[3], return: "i32" },
  write: { arguments: WORDS[3], return: "i32" },
  recv: { arguments: WORDS[4], return: "i32" },
  splice: { arguments: WORDS[6], return: "i32" },
  pipe2: { arguments: ["pointer", "i32"], return: "i32" },
  ioctl: { arguments: WORDS[3], return: "i32" },
  fcntl: { arguments: ["i32", "i32", "i32"], return: "i32" },
  shutdown: { arguments: WORDS[2], return: "i32" },
  setsockopt: { arguments: WORDS[5], return: "i32" },
  getsockopt: { arguments: WORDS[5], return: "i32" },
  close: { arguments: ["i32"], return: "i32" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;

/** Of the thread that made it, and of no other. Null where this runtime has no FFI. */
export function openRelayCalls(): RelayCalls | null {
  const ffi = openLinuxFfi();
  return ffi === null ? null : new RelayCalls(ffi);
}

export interface Pipe {
  readonly readEnd: number;
  readonly writeEnd: number;
}

export class RelayCalls {
  /** What `receive` fills and `send` empties, from its start; somewhat longer than `BUFFER_BYTES`. */
  readonly buffer: Uint8Array;
  protected readonly words = new NumberWords();
  readonly #library;
  readonly #errno: Int32Array;
  /** Lent by address, which keeps nothing alive. */
  readonly #memory;
  readonly #pointers;

  constructor(ffi: typeof Ffi) {
    const library = ffi.dlopen(null, SIGNATURES);
    this.#library = library;
    this.#errno = new Int32Array(ffi.toArrayBuffer(library.functions.__errno_location(), 4, false));
    const memory = {
      buffer: new Uint8Array(new ArrayBuffer(BUFFER_BYTES + TAILROOM_BYTES)),
      events: new Uint32Array(new ArrayBuffer(BATCH * EVENT_WORDS * 4)),
      event: new Uint32Array(new ArrayBuffer(EVENT_WORDS * 4)),
      pair: new Int32Array(new ArrayBuffer(8)),
      length: new Uint32Array(new ArrayBuffer(4)),
      word: new BigUint64Array([1n]),
      one: Int32Array.of(1),
      linger: Int32Array.of(1, 0), // struct linger: ONOFF(4) LINGER(4), in seconds
    };
    this.#memory = memory;
    this.buffer = memory.buffer;
    const pointerOf = (view: NodeJS.ArrayBufferView): bigint => ffi.getRawPointer(view);
    this.#pointers = {
      buffer: pointerOf(memory.buffer),
      events: pointerOf(memory.events),
      event: pointerOf(memory.event),
      pair: pointerOf(memory.pair),
      length: pointerOf(memory.length),
      word: pointerOf(memory.word),
      one: pointerOf(memory.one),
      linger: pointerOf(memory.linger),
    };
  }

  /** What a call came to: its result, or the errno as a negative number. */
  protected answer(result: number): number {
    return result < 0 ? -int32At(this.#errno, 0) : result;
  }

  openEpoll(): number {
    return this.answer(this.#library.functions.epoll_create1(O_CLOEXEC));
  }

  /** Edge-triggered, both directions, until the descriptor is closed. */
  watch(epoll: number, fd: number, data: number): number {
    return this.#control(epoll, ADD, fd, data);
  }

  /** One that is watched, by other data from now on: what it is ready for is reported once more. */
  watchAs(epoll: number, fd: number, data: number): number {
    return this.#control(epoll, MODIFY, fd, data);
  }

  #control(epoll: number, operation: bigint, fd: number, data: number): number {
    const { event } = this.#memory;
    event[0] = READABLE | WRITABLE | PEER_ENDED | EDGE_TRIGGERED;
    event[DATA_WORD] = data;
    const { epoll_ctl } = this.#library.functions;
    return this.answer(epoll_ctl(this.words.of(epoll), operation, this.words.of(fd), this.#pointers.event));
  }

  /** Blocks this thread. */
  wait(epoll: number, timeoutMs: number): number {
    const { epoll_wait } = this.#library.functions;
    return this.answer(
      epoll_wait(this.words.of(epoll), this.#pointers.events, BATCH_WORD, this.words.of(timeoutMs)),
    );
  }

  eventsAt(index: number): number {
    return uint32At(this.#memory.events, index * EVENT_WORDS);
  }

  dataAt(index: number): number {
    return uint32At(this.#memory.events, index * EVENT_WORDS + DATA_WORD);
  }

  openSignal(): number {
    return this.answer(this.#library.functions.eventfd(0, O_NONBLOCK | O_CLOEXEC));
  }

  raiseSignal(fd: number): void {
    this.#memory.word[0] = 1n;
    this.#library.functions.write(this.words.of(fd), this.#pointers.word, 8n); // it fails only where it is raised 2^64 times already
  }

  clearSignal(fd: number): void {
    this.#library.functions.read(this.words.of(fd), this.#pointers.word, 8n);
  }

  /** Into `buffer`. */
  receive(fd: number, size: number): number {
    return this.receiveAt(fd, this.#pointers.buffer, size);
  }

  /** Into other memory, by its address. */
  receiveAt(fd: number, address: bigint, size: number): number {
    return this.answer(this.#library.functions.read(this.words.of(fd), address, this.words.of(size)));
  }

  /** Bytes that the socket has for its reader. */
  available(fd: number): number {
    return this.#ask(fd, FIONREAD);
  }

  /** Bytes that its peer has not acknowledged yet. */
  unsent(fd: number): number {
    return this.#ask(fd, SIOCOUTQ);
  }

  #ask(fd: number, what: bigint): number {
    const answer = this.answer(this.#library.functions.ioctl(this.words.of(fd), what, this.#pointers.pair));
    return answer < 0 ? answer : int32At(this.#memory.pair, 0);
  }

  /** What has befallen the socket or become of a connect, as a negative errno, and 0 from then on; `EPIPE`: a reset that came behind its peer's end. */
  takeError(fd: number): number {
    const { getsockopt } = this.#library.functions;
    this.#memory.length[0] = 4;
    const { length, pair } = this.#pointers;
    const answer = this.answer(getsockopt(this.words.of(fd), SOCKET_LEVEL, SO_ERROR, pair, length));
    return answer < 0 ? answer : -int32At(this.#memory.pair, 0);
  }

  /** What `receive` would say, with nothing taken off the socket: 1, 0 at its end, or an errno. */
  peek(fd: number): number {
    return this.answer(this.#library.functions.recv(this.words.of(fd), this.#pointers.buffer, 1n, PEEK));
  }

  /** What `receiveAt` would do, with nothing taken off the socket. */
  peekAt(fd: number, address: bigint, size: number): number {
    return this.answer(this.#library.functions.recv(this.words.of(fd), address, this.words.of(size), PEEK));
  }

  /** From `buffer`. */
  send(fd: number, size: number): number {
    return this.sendAt(fd, this.#pointers.buffer, size);
  }

  /** From other memory, by its address. */
  sendAt(fd: number, address: bigint, size: number): number {
    return this.answer(this.#library.functions.write(this.words.of(fd), address, this.words.of(size)));
  }

  splice(from: number, to: number, size: number): number {
    const { splice } = this.#library.functions;
    return this.answer(
      splice(this.words.of(from), 0n, this.words.of(to), 0n, this.words.of(size), SPLICE_FLAGS),
    );
  }

  /** Of `PIPE_BYTES`. Null: no descriptors are left, or this user has as much pipe memory as the system allows. */
  openPipe(): Pipe | null {
    if (this.#library.functions.pipe2(this.#pointers.pair, O_NONBLOCK | O_CLOEXEC) < 0) return null;
    const readEnd = int32At(this.#memory.pair, 0);
    const writeEnd = int32At(this.#memory.pair, 1);
    if (this.#library.functions.fcntl(writeEnd, F_SETPIPE_SZ, PIPE_BYTES) >= 0) return { readEnd, writeEnd };
    this.close(readEnd);
    this.close(writeEnd);
    return null;
  }

  /** A second descriptor of the same file, close-on-exec. */
  duplicate(fd: number): number {
    return this.answer(this.#library.functions.fcntl(fd, F_DUPFD_CLOEXEC, 0));
  }

  /** Small pieces wait for no acknowledgement from now on. Connections of a listener that is set so are born with it. */
  noDelay(fd: number): void {
    this.#library.functions.setsockopt(this.words.of(fd), IPPROTO_TCP, TCP_NODELAY, this.#pointers.one, 4n);
  }

  endWriting(fd: number): number {
    return this.answer(this.#library.functions.shutdown(this.words.of(fd), SHUT_WR));
  }

  close(fd: number): void {
    this.#library.functions.close(fd);
  }

  /** Closes a socket so that its peer sees a reset; what it has not been sent yet is thrown away. */
  reset(fd: number): void {
    this.#library.functions.setsockopt(this.words.of(fd), SOCKET_LEVEL, SO_LINGER, this.#pointers.linger, 8n);
    this.close(fd);
  }
}
