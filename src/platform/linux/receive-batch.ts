/** Many datagrams with one system call: recvmmsg(2) into memory that is made once. 64-bit layouts. */
import type * as Ffi from "node:ffi";
import { readControl, type Control } from "./control-message.ts";
import { decodeSockaddr, SOCKADDR_BYTES, type RawEndpoint } from "./sockaddr.ts";

const BATCH = 32;
/** No UDP payload is longer. */
const PAYLOAD_BYTES = 65_536;
/** Room for both families' original destination and traffic class. */
const CONTROL_BYTES = 128;
/** Name slots start at multiples of this. */
const NAME_BYTES = 32;
const HEADER_BYTES = 64;
const IOVEC_BYTES = 16;
const MSG_DONTWAIT = 0x40;
const MSG_CTRUNC = 8;

// mmsghdr: NAME*(8) NAMELEN(4) PAD(4) IOV*(8) IOVLEN(8) CONTROL*(8) CONTROLLEN(8) FLAGS(4) PAD(4) LEN(4) PAD(4)
const CONTROL_LENGTH_AT = 40;
const FLAGS_AT = 48;
const LENGTH_AT = 56;

const SIGNATURES = {
  recvmmsg: { arguments: ["i32", "pointer", "u32", "i32", "pointer"], return: "i32" },
} as const;

/** `payload` is the receiver's own. */
export type OnReceived = (payload: Uint8Array, source: RawEndpoint, control: Control) => void;

/** Reads one socket. Its 2 MiB are touched only as far as datagrams are long. */
export class ReceiveBatch {
  readonly #library;
  readonly #payloads = Buffer.from(new ArrayBuffer(BATCH * PAYLOAD_BYTES));
  readonly #names = new Uint8Array(new ArrayBuffer(BATCH * NAME_BYTES));
  readonly #controls = new Uint8Array(new ArrayBuffer(BATCH * CONTROL_BYTES));
  readonly #vectors = new BigUint64Array(new ArrayBuffer(BATCH * IOVEC_BYTES));
  readonly #headers = new Uint8Array(new ArrayBuffer(BATCH * HEADER_BYTES));
  readonly #view = new DataView(this.#headers.buffer);
  /** The kernel overwrites lengths in the headers, so each call begins from a copy of this. */
  readonly #fresh: Uint8Array;
  readonly #headersPointer: bigint;

  constructor(ffi: typeof Ffi) {
    this.#library = ffi.dlopen(null, SIGNATURES);
    this.#headersPointer = ffi.getRawPointer(this.#headers);
    const [payloads, names, controls, vectors] = [
      this.#payloads,
      this.#names,
      this.#controls,
      this.#vectors,
    ].map((memory) => ffi.getRawPointer(memory)) as [bigint, bigint, bigint, bigint];
    const words = new BigUint64Array(this.#headers.buffer);
    for (let at = 0; at < BATCH; at++) {
      this.#vectors.set([payloads + BigInt(at * PAYLOAD_BYTES), BigInt(PAYLOAD_BYTES)], at * 2);
      const header = at * (HEADER_BYTES / 8);
      words[header] = names + BigInt(at * NAME_BYTES);
      new Uint32Array(this.#headers.buffer, at * HEADER_BYTES + 8, 1)[0] = SOCKADDR_BYTES;
      words[header + 2] = vectors + BigInt(at * IOVEC_BYTES);
      words[header + 3] = 1n;
      words[header + 4] = controls + BigInt(at * CONTROL_BYTES);
      words[header + 5] = BigInt(CONTROL_BYTES);
    }
    this.#fresh = this.#headers.slice();
  }

  /** Gives what has arrived to `on`, one batch at most. Never waits; a pending error of the socket is taken off it. */
  read(fd: number, on: OnReceived): void {
    this.#headers.set(this.#fresh);
    const count = this.#library.functions.recvmmsg(fd, this.#headersPointer, BATCH, MSG_DONTWAIT, 0n);
    for (let at = 0; at < count; at++) this.#give(at, on);
  }

  #give(at: number, on: OnReceived): void {
    const header = at * HEADER_BYTES;
    const length = this.#view.getUint32(header + LENGTH_AT, LITTLE_ENDIAN);
    const controlLength = Number(this.#view.getBigUint64(header + CONTROL_LENGTH_AT, LITTLE_ENDIAN));
    const flags = this.#view.getUint32(header + FLAGS_AT, LITTLE_ENDIAN);
    const source = decodeSockaddr(this.#names.subarray(at * NAME_BYTES, (at + 1) * NAME_BYTES));
    if (source === null || (flags & MSG_CTRUNC) !== 0) return; // no IP datagram, or nobody knows where to
    const from = at * PAYLOAD_BYTES;
    const payload = Buffer.from(this.#payloads.subarray(from, from + length)); // a copy
    const control = this.#controls.subarray(at * CONTROL_BYTES, at * CONTROL_BYTES + controlLength);
    on(payload, source, readControl(control));
  }
}

const LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;
