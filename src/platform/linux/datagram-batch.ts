/** Many datagrams with one system call: recvmmsg(2) and sendmmsg(2), into memory that is made once. 64-bit layouts. */
import type * as Ffi from "node:ffi";
import { SOCKADDR_BYTES } from "./sockaddr.ts";

export const BATCH = 64;
/** No UDP payload is longer. A slot's memory is touched only as far as its datagrams are long. */
const SLOT_BYTES = 65_536;
/** Name slots start at multiples of this. */
const NAME_BYTES = 32;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const EAGAIN = 11;

// mmsghdr: NAME*(8) NAMELEN(4) PAD(4) IOV*(8) IOVLEN(8) CONTROL*(8) CONTROLLEN(8) FLAGS(4) PAD(4) LEN(4) PAD(4)
const HEADER_WORDS = 16;
const NAME_LENGTH_WORD = 2;
const LENGTH_WORD = 14;
// iovec: BASE*(8) LENGTH(8)
const VECTOR_WORDS = 4;
const VECTOR_LENGTH_WORD = 2;

const SIGNATURES = {
  recvmmsg: { arguments: ["i32", "pointer", "u32", "i32", "pointer"], return: "i32" },
  sendmmsg: { arguments: ["i32", "pointer", "u32", "i32"], return: "i32" },
  fcntl: { arguments: ["i32", "i32", "i32"], return: "i32" },
  close: { arguments: ["i32"], return: "i32" },
  __errno_location: { arguments: [], return: "pointer" },
} as const;
const F_DUPFD_CLOEXEC = 1030;

/** The slots of one direction. */
class Slots {
  readonly payloads = new Uint8Array(new ArrayBuffer(BATCH * SLOT_BYTES));
  readonly names = new Uint8Array(new ArrayBuffer(BATCH * NAME_BYTES));
  readonly vectors = new Uint32Array(new ArrayBuffer(BATCH * VECTOR_WORDS * 4));
  readonly headers = new Uint32Array(new ArrayBuffer(BATCH * HEADER_WORDS * 4));
  readonly pointer: bigint;

  constructor(ffi: typeof Ffi) {
    const [payloads, names, vectors] = [this.payloads, this.names, this.vectors].map((memory) =>
      ffi.getRawPointer(memory),
    ) as [bigint, bigint, bigint];
    this.pointer = ffi.getRawPointer(this.headers);
    const vectorWords = new BigUint64Array(this.vectors.buffer);
    const headerWords = new BigUint64Array(this.headers.buffer);
    for (let at = 0; at < BATCH; at++) {
      vectorWords[at * 2] = payloads + BigInt(at * SLOT_BYTES);
      this.setLength(at, SLOT_BYTES);
      const header = at * (HEADER_WORDS / 2);
      headerWords[header] = names + BigInt(at * NAME_BYTES);
      headerWords[header + 2] = vectors + BigInt(at * VECTOR_WORDS * 4);
      headerWords[header + 3] = 1n;
    }
  }

  setLength(at: number, bytes: number): void {
    this.vectors[at * VECTOR_WORDS + VECTOR_LENGTH_WORD + LOW] = bytes;
  }

  setNameLength(at: number, bytes: number): void {
    this.headers[at * HEADER_WORDS + NAME_LENGTH_WORD] = bytes;
  }
}

/** Of one thread: its calls come one after the other. Null where this runtime cannot. */
export function openDatagramBatch(): DatagramBatch | null {
  const ffi = process.platform === "linux" ? process.getBuiltinModule("node:ffi") : undefined;
  return ffi === undefined ? null : new DatagramBatch(ffi);
}

/** `name` is a sockaddr that is overwritten by the next read; `payload` is the receiver's own. */
export type OnDatagram = (payload: Buffer, name: Uint8Array) => void;

export class DatagramBatch {
  readonly #library;
  readonly #errno: Int32Array;
  readonly #in: Slots;
  readonly #out: Slots;
  readonly #names: readonly Uint8Array[];

  constructor(ffi: typeof Ffi) {
    this.#library = ffi.dlopen(null, SIGNATURES);
    const errno = this.#library.functions.__errno_location();
    this.#errno = new Int32Array(ffi.toArrayBuffer(errno, 4, false));
    this.#in = new Slots(ffi);
    this.#out = new Slots(ffi);
    const { names } = this.#in;
    this.#names = Array.from({ length: BATCH }, (_, at) =>
      names.subarray(at * NAME_BYTES, at * NAME_BYTES + SOCKADDR_BYTES),
    );
  }

  /** Gives what has arrived, one batch at most, and answers with how many. A pending error of the socket is taken off. */
  read(fd: number, on: OnDatagram): number {
    const { headers, payloads, pointer } = this.#in;
    for (let at = 0; at < BATCH; at++) this.#in.setNameLength(at, SOCKADDR_BYTES);
    const count = this.#library.functions.recvmmsg(fd, pointer, BATCH, MSG_DONTWAIT, 0n);
    for (let at = 0; at < count; at++) {
      const length = headers[at * HEADER_WORDS + LENGTH_WORD] as number;
      const payload = Buffer.allocUnsafe(length);
      payload.set(payloads.subarray(at * SLOT_BYTES, at * SLOT_BYTES + length));
      on(payload, this.#names[at] as Uint8Array);
    }
    return count;
  }

  /** Puts a datagram into a slot below `BATCH`; false: it is too long for any. */
  put(at: number, parts: readonly Uint8Array[], name: Uint8Array, nameLength: number): boolean {
    let length = 0;
    for (const part of parts) length += part.length;
    if (length > SLOT_BYTES) return false;
    let to = at * SLOT_BYTES;
    for (const part of parts) {
      this.#out.payloads.set(part, to);
      to += part.length;
    }
    this.#out.setLength(at, length);
    this.#out.names.set(name, at * NAME_BYTES);
    this.#out.setNameLength(at, nameLength);
    return true;
  }

  /** Sends the first `count` slots. What the kernel does not take now is lost, as on any network. */
  flush(fd: number, count: number): void {
    const { sendmmsg } = this.#library.functions;
    for (let from = 0; from < count;) {
      const pointer = this.#out.pointer + BigInt(from * HEADER_WORDS * 4);
      const sent = sendmmsg(fd, pointer, count - from, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent > 0) from += sent;
      else if (this.#errno[0] === EAGAIN) return;
      else from++; // an error of this one, or an earlier one's from afar: it says nothing about the next
    }
  }

  /** A second descriptor of the same socket. Throws where none is left. */
  duplicate(fd: number): number {
    const made = this.#library.functions.fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (made < 0) throw new Error("no descriptor is left");
    return made;
  }

  close(fd: number): void {
    this.#library.functions.close(fd);
  }
}

/** The low word of a 64-bit number. */
const LOW = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1 ? 0 : 1;
