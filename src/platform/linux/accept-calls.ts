/** The calls of a worker that accepts and dials, too. */
import type * as Ffi from "node:ffi";
import { constants } from "node:os";
import { MOST_INTERFACE_NAME_BYTES } from "#core/fields.ts";
import { SO_ORIGINAL_DST, SOL_IP, SOL_IPV6 } from "./control-message.ts";
import { openLibc } from "./libc.ts";
import { WORDS } from "./machine-words.ts";
import { OwnPorts } from "./own-port.ts";
import { ADD, DATA_WORD, EVENT_WORDS, PEEK, RelayCalls } from "./relay-calls.ts";
import { AF_INET, AF_INET6, encodeSockaddr, SOCKADDR_BYTES } from "./sockaddr.ts";
import {
  AF_UNIX,
  O_CLOEXEC,
  O_NONBLOCK,
  SOCK_STREAM,
  SOL_SOCKET,
  SO_BINDTODEVICE,
  SO_MARK,
} from "./numbers.ts";
import { int32At, uint32At } from "#lib/at.ts";
import { openLinuxFfi } from "#platform/ffi.ts";

/** What is looked at of a handshake at most. */
const PEEK_BYTES = 4096;
/** Bound of the reply bytes of one handshake. */
const MOST_WORDS = 1024;

const EPOLLIN = 1;
/** One thread is woken for a connection, not all (epoll_ctl(2), since Linux 4.5). */
const EPOLLEXCLUSIVE = 1 << 28;
const DELETE = 2n;
const SOCK_FLAGS = BigInt(O_NONBLOCK | O_CLOEXEC);
const STREAM = BigInt(SOCK_STREAM) | SOCK_FLAGS;
const PEEK_SIZE = BigInt(PEEK_BYTES);
const SO_KEEPALIVE = 9;
const IPPROTO_TCP = 6;
const TCP_KEEPIDLE = 4;
const TCP_KEEPINTVL = 5;
const TCP_QUICKACK = 12;
/** Of bind(2) to an address that no interface has (ip(7)). */
const NOT_OURS = -constants.errno.EADDRNOTAVAIL;

const SIGNATURES = {
  accept4: { arguments: WORDS[4], return: "i32" },
  getsockname: { arguments: WORDS[3], return: "i32" },
  socket: { arguments: WORDS[3], return: "i32" },
  socketpair: { arguments: WORDS[4], return: "i32" },
  connect: { arguments: WORDS[3], return: "i32" },
  bind: { arguments: WORDS[3], return: "i32" },
  setsockopt: { arguments: WORDS[5], return: "i32" },
  getsockopt: { arguments: WORDS[5], return: "i32" },
  recv: { arguments: WORDS[4], return: "i32" },
  read: { arguments: WORDS[3], return: "i32" },
  write: { arguments: WORDS[3], return: "i32" },
  epoll_ctl: { arguments: WORDS[4], return: "i32" },
} as const;

/** Of the thread that made it, and of no other. Null where this runtime has no FFI. */
export function openAcceptCalls(): AcceptCalls | null {
  const ffi = openLinuxFfi();
  return ffi === null ? null : new AcceptCalls(ffi);
}

export class AcceptCalls extends RelayCalls {
  /** What `look` fills, from its start. */
  readonly bytes: Buffer<ArrayBuffer>;
  /** A socket address: what `accept` and `localName` fill and `connect` reads. */
  readonly address: Uint8Array<ArrayBuffer>;
  readonly #library;
  readonly #memory;
  readonly #pointers;
  readonly #ports: OwnPorts | null;

  constructor(ffi: typeof Ffi) {
    super(ffi);
    const libc = openLibc();
    this.#ports = libc === null ? null : new OwnPorts(libc);
    this.#library = ffi.dlopen(null, SIGNATURES);
    const memory = {
      bytes: Buffer.from(new ArrayBuffer(PEEK_BYTES)),
      words: new Uint8Array(new ArrayBuffer(MOST_WORDS)),
      address: new Uint8Array(new ArrayBuffer(SOCKADDR_BYTES)),
      bound: new Uint8Array(new ArrayBuffer(SOCKADDR_BYTES)),
      length: new Uint32Array(new ArrayBuffer(4)),
      value: new Int32Array(new ArrayBuffer(4)),
      ends: new Int32Array(new ArrayBuffer(8)),
      name: new Uint8Array(new ArrayBuffer(16)),
      event: new Uint32Array(new ArrayBuffer(EVENT_WORDS * 4)),
    };
    this.#memory = memory;
    this.bytes = memory.bytes;
    this.address = memory.address;
    const pointerOf = (view: NodeJS.ArrayBufferView): bigint => ffi.getRawPointer(view);
    this.#pointers = {
      bytes: pointerOf(memory.bytes),
      words: pointerOf(memory.words),
      address: pointerOf(memory.address),
      bound: pointerOf(memory.bound),
      length: pointerOf(memory.length),
      value: pointerOf(memory.value),
      ends: pointerOf(memory.ends),
      name: pointerOf(memory.name),
      event: pointerOf(memory.event),
    };
  }

  /** Non-blocking, close-on-exec; `address` is the client's. */
  accept(listener: number): number {
    const { address, length } = this.#pointers;
    this.#memory.length[0] = SOCKADDR_BYTES;
    return this.answer(this.#library.functions.accept4(this.words.of(listener), address, length, SOCK_FLAGS));
  }

  /** Into `address`. */
  localName(fd: number): number {
    const { address, length } = this.#pointers;
    this.#memory.length[0] = SOCKADDR_BYTES;
    return this.answer(this.#library.functions.getsockname(this.words.of(fd), address, length));
  }

  /**
   * Where a redirected connection was going, as a socket address at the start of `bytes`; answers with its length, or with
   * an errno where connection tracking does not know it.
   */
  originalName(fd: number, family: 4 | 6): number {
    const { bytes } = this.#pointers;
    this.#memory.length[0] = SOCKADDR_BYTES;
    const answer = this.#get(fd, family === 4 ? SOL_IP : SOL_IPV6, SO_ORIGINAL_DST, bytes);
    return answer < 0 ? answer : uint32At(this.#memory.length, 0);
  }

  open(family: 4 | 6): number {
    const domain = family === 4 ? AF_INET : AF_INET6;
    return this.answer(this.#library.functions.socket(this.words.of(domain), STREAM, 0n));
  }

  /** Two ends of one stream inside this machine; null where the system has none left. */
  pair(): readonly [number, number] | null {
    const { ends } = this.#memory;
    const { socketpair } = this.#library.functions;
    const answer = this.answer(socketpair(this.words.of(AF_UNIX), STREAM, 0n, this.#pointers.ends));
    return answer < 0 ? null : [int32At(ends, 0), int32At(ends, 1)];
  }

  /** To `address`, of which so many bytes count. */
  connect(fd: number, addressBytes: number): number {
    const { connect } = this.#library.functions;
    return this.answer(connect(this.words.of(fd), this.#pointers.address, this.words.of(addressBytes)));
  }

  /**
   * May this be an address of this machine, whatever its interface does? Where the system does not say, it may: with
   * `ip_nonlocal_bind` every address, and always those that need a zone.
   */
  mayBeOwn(address: Uint8Array): boolean {
    const fd = this.open(address.length === 4 ? 4 : 6);
    if (fd < 0) return true;
    const size = encodeSockaddr(this.#memory.bound, { address, port: 0 });
    const { bind } = this.#library.functions;
    const answer = this.answer(bind(this.words.of(fd), this.#pointers.bound, this.words.of(size)));
    this.close(fd);
    return answer !== NOT_OURS;
  }

  /** As much as the length in memory says, which is then how much it was. */
  #get(fd: number, level: number, option: number, into: bigint): number {
    const { getsockopt } = this.#library.functions;
    return this.answer(
      getsockopt(this.words.of(fd), this.words.of(level), this.words.of(option), into, this.#pointers.length),
    );
  }

  #setBytes(fd: number, level: number, option: number, from: bigint, size: number): number {
    const { setsockopt } = this.#library.functions;
    return this.answer(
      setsockopt(this.words.of(fd), this.words.of(level), this.words.of(option), from, this.words.of(size)),
    );
  }

  #set(fd: number, level: number, option: number, to: number): number {
    this.#memory.value[0] = to;
    return this.#setBytes(fd, level, option, this.#pointers.value, 4);
  }

  /** Connections of a listener that is set so are born with it. */
  keepAlive(fd: number, idleSeconds: number, intervalSeconds: number): void {
    this.#set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    this.#set(fd, IPPROTO_TCP, TCP_KEEPIDLE, idleSeconds);
    this.#set(fd, IPPROTO_TCP, TCP_KEEPINTVL, intervalSeconds);
  }

  /** Connections of a listener that is set so say that they have got bytes along with their answer, if it is soon. */
  delayAcknowledgements(fd: number): void {
    this.#set(fd, IPPROTO_TCP, TCP_QUICKACK, 0);
  }

  noKeepAlive(fd: number): void {
    this.#set(fd, SOL_SOCKET, SO_KEEPALIVE, 0);
  }

  mark(fd: number, mark: number): number {
    return this.#set(fd, SOL_SOCKET, SO_MARK, mark | 0);
  }

  /** To be called before anything else gives the socket a port: it gets one of its own. No device has a longer name. */
  bindToDevice(fd: number, family: 4 | 6, name: Uint8Array): number {
    if (name.length > MOST_INTERFACE_NAME_BYTES) return -constants.errno.ENODEV;
    this.#ports?.take(fd, family);
    this.#memory.name.fill(0).set(name);
    return this.#setBytes(fd, SOL_SOCKET, SO_BINDTODEVICE, this.#pointers.name, name.length + 1);
  }

  /** Into `bytes`; the socket keeps them. */
  look(fd: number): number {
    const { recv } = this.#library.functions;
    return this.answer(recv(this.words.of(fd), this.#pointers.bytes, PEEK_SIZE, PEEK));
  }

  /** Takes bytes off the socket that `look` has seen; what it answers is how many. */
  consume(fd: number, size: number): number {
    return this.answer(
      this.#library.functions.read(this.words.of(fd), this.#pointers.bytes, this.words.of(size)),
    );
  }

  /** How many of these bytes, `MOST_WORDS` at most, the kernel has taken. */
  say(fd: number, words: Uint8Array): number {
    this.#memory.words.set(words);
    const { write } = this.#library.functions;
    return this.answer(write(this.words.of(fd), this.#pointers.words, this.words.of(words.length)));
  }

  /** What it has to be read is thrown away first: a close over unread bytes would be a reset. */
  discard(fd: number, isFault: boolean): void {
    if (isFault) return this.reset(fd);
    this.consume(fd, PEEK_BYTES);
    this.close(fd);
  }

  /** Level-triggered, for connections. */
  watchListener(epoll: number, fd: number, data: number): number {
    const { event } = this.#memory;
    event[0] = EPOLLIN | EPOLLEXCLUSIVE;
    event[DATA_WORD] = data;
    const { epoll_ctl } = this.#library.functions;
    return this.answer(epoll_ctl(this.words.of(epoll), ADD, this.words.of(fd), this.#pointers.event));
  }

  /** Needed where another descriptor of the same file stays open: closing one does not end the watch. */
  unwatch(epoll: number, fd: number): void {
    this.#library.functions.epoll_ctl(this.words.of(epoll), DELETE, this.words.of(fd), this.#pointers.event);
  }
}
