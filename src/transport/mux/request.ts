/** The request at the start of each stream of a multiplexed connection: destination, and the server's status reply. */
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Destination } from "#core/session.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { decodeSocksAddress, encodeSocksAddress, MAX_SOCKS_ADDRESS } from "#net/address/socks-address.ts";

/** In front of the address. */
export const FLAGS_BYTES = 2;
const FLAG_UDP = 1;
const FLAG_ADDRESSES = 2;
/** Of an answer, one byte; behind another one a text says why. */
export const STATUS_OK = 0;
const STATUS_FAILED = 1;
/** Of a failure's text; a peer that sends more is no peer of this protocol. */
const MAX_MESSAGE_BYTES = 4096;
const SHOWN_CHARACTERS = 200;

export interface StreamRequest {
  /** `packets`: every datagram names its peer; `datagrams`: all go to the one destination. */
  readonly kind: "stream" | "packets" | "datagrams";
  readonly destination: Destination;
}

// Request: FLAGS(2, big endian: 1 datagrams, 2 each with an address) ADDRESS in SOCKS form.
export function encodeStreamRequest({ kind, destination }: StreamRequest): Buffer {
  const flags = kind === "stream" ? 0 : kind === "packets" ? FLAG_UDP | FLAG_ADDRESSES : FLAG_UDP;
  return Buffer.concat([Buffer.from([0, flags]), encodeSocksAddress(destination)]);
}

/** Takes the request; null: more bytes are needed. Throws `ProtocolError`. */
export function takeStreamRequest(arrived: ByteQueue): StreamRequest | null {
  const head = arrived.peekUpTo(FLAGS_BYTES + MAX_SOCKS_ADDRESS);
  const address = decodeSocksAddress(head, FLAGS_BYTES);
  if (address === null) return null;
  const flags = head.readUInt16BE(0);
  arrived.skip(address.next);
  const kind = (flags & FLAG_UDP) === 0 ? "stream" : (flags & FLAG_ADDRESSES) === 0 ? "datagrams" : "packets";
  return { kind, destination: address.destination };
}

// Answer: STATUS(1: 0 open, 1 failed); after 1 SIZE(varint, low bits first) TEXT.
export function encodeAnswer(failure: string | null): Buffer {
  if (failure === null) return Buffer.from([STATUS_OK]);
  const words = Buffer.from(failure).subarray(0, 0x7f);
  return Buffer.concat([Buffer.from([STATUS_FAILED, words.length]), words]);
}

/** The client's side: the request leaves with the first bytes, the answer is taken off what comes back. */
export class RequestCodec implements StreamCodec {
  #request: Buffer | null;
  /** Null: the answer has come. */
  #arrived: ByteQueue | null = new ByteQueue();

  constructor(request: StreamRequest) {
    this.#request = encodeStreamRequest(request);
  }

  seal(plain: Buffer): Buffer {
    if (this.#request === null) return plain;
    const out = Buffer.concat([this.#request, plain]);
    this.#request = null;
    return out;
  }

  sealEnd(): Buffer | null {
    return this.#request === null ? null : this.seal(Buffer.alloc(0));
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    if (this.#arrived === null) return emit(wire);
    this.#arrived.push(wire);
    if (!takeAnswer(this.#arrived)) return;
    const rest = this.#arrived.takeAll();
    this.#arrived = null;
    if (rest.length > 0) emit(rest);
  }

  openEnd(): void {
    if (this.#arrived !== null) throw new DialError("failed", "the mux server ended the stream unanswered");
  }
}

/** False: more bytes are needed. Throws `DialError` for a failure, `ProtocolError` for nonsense. */
export function takeAnswer(arrived: ByteQueue): boolean {
  const status = arrived.peek(1)?.[0];
  if (status === undefined) return false;
  if (status === STATUS_OK) {
    arrived.skip(1);
    return true;
  }
  if (status !== STATUS_FAILED) throw new ProtocolError(`a mux answer of ${status}, expected 0 or 1`);
  const message = failureText(arrived);
  if (message === null) return false;
  throw new DialError("failed", `the mux server says: ${message}`);
}

function failureText(arrived: ByteQueue): string | null {
  const head = arrived.peekUpTo(3);
  let size = 0;
  for (let at = 1; at < 3; at++) {
    const byte = head[at];
    if (byte === undefined) return null;
    size |= (byte & 0x7f) << (7 * (at - 1));
    if (byte > 0x7f) continue;
    if (size > MAX_MESSAGE_BYTES) break;
    const text = arrived.peek(1 + at + size)?.subarray(1 + at);
    return text === undefined
      ? null
      : text.toString("latin1", 0, SHOWN_CHARACTERS).replaceAll(/[^\x20-\x7e]/g, "?");
  }
  throw new ProtocolError(`a mux failure text of more than ${MAX_MESSAGE_BYTES} bytes`);
}
