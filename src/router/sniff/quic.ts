/** QUIC versions 1 and 2: the name in the ClientHello of a client's Initial packets. */
import { CryptoStream } from "./crypto-stream.ts";
import type { Probe, SniffProtocol, Verdict } from "./probe.ts";
import { clientKeys, headerMask, openPayload, QUIC_VERSIONS } from "./quic-keys.ts";
import type { InitialKeys, QuicVersion } from "./quic-keys.ts";
import { byteAt } from "#lib/at.ts";

/** Packets of one datagram that are looked at; a first flight has two or three. */
const MAX_PACKETS = 8;
/** Datagrams that are looked at; then the hello will not be complete. */
const MAX_DATAGRAMS = 16;
const MAX_CONNECTION_ID_BYTES = 20;
const LONG_HEADER = 0x80;
const SAMPLE_BYTES = 16;

interface LongHeader {
  readonly version: QuicVersion;
  readonly connectionId: Uint8Array;
  readonly isInitial: boolean;
  /** Where the packet number starts, in the datagram. */
  readonly numberAt: number;
  /** Where the packet ends. */
  readonly end: number;
}

class QuicProbe implements Probe {
  readonly #stream = new CryptoStream();
  #datagrams = 0;
  #connectionId: Buffer | null = null;
  #keys: InitialKeys | null = null;

  feed(datagram: Uint8Array): Verdict {
    const genuine = this.#readPackets(datagram);
    if (!genuine && this.#keys === null) return "other";
    return ++this.#datagrams >= MAX_DATAGRAMS ? this.#lastVerdict() : this.#stream.verdict();
  }

  #lastVerdict(): Verdict {
    const verdict = this.#stream.verdict();
    return verdict === "more" ? "other" : verdict;
  }

  /** Was there an Initial packet of this connection? Packets behind the first may be of other kinds (RFC 9000 §12.2). */
  #readPackets(datagram: Uint8Array): boolean {
    let genuine = false;
    let start = 0;
    for (let packet = 0; packet < MAX_PACKETS && start < datagram.length; packet++) {
      const header = longHeaderAt(datagram, start);
      if (header === null) break;
      if (header.isInitial && this.#readInitial(datagram, start, header)) genuine = true;
      start = header.end;
    }
    return genuine;
  }

  #readInitial(datagram: Uint8Array, start: number, header: LongHeader): boolean {
    const { connectionId, version, numberAt, end } = header;
    if (this.#connectionId !== null && !this.#connectionId.equals(connectionId)) return false;
    const keys = this.#keys ?? clientKeys(version, connectionId);
    const sample = datagram.subarray(numberAt + 4, numberAt + 4 + SAMPLE_BYTES);
    if (sample.length < SAMPLE_BYTES || numberAt + 4 + SAMPLE_BYTES > end) return false;
    const mask = headerMask(keys, sample);
    const plain = Buffer.from(datagram.subarray(start, numberAt + 4));
    plain[0] = byteAt(plain, 0) ^ (byteAt(mask, 0) & 0x0f);
    const numberBytes = (byteAt(plain, 0) & 0x03) + 1;
    const at = numberAt - start;
    for (let i = 0; i < numberBytes; i++) plain[at + i] = byteAt(plain, at + i) ^ byteAt(mask, i + 1);
    // A first flight's numbers are small, so the number is what is left of it on the wire (RFC 9000 §A.3).
    const number = plain.readUIntBE(at, numberBytes);
    const sealed = datagram.subarray(numberAt + numberBytes, end);
    const payload = openPayload(keys, number, plain.subarray(0, at + numberBytes), sealed);
    if (payload === null) return false;
    this.#keys = keys;
    this.#connectionId ??= Buffer.from(connectionId);
    readFrames(payload, this.#stream);
    return true;
  }
}

/**
 * Long header (RFC 9000 §17.2): FIRST(1) VERSION(4) DCID(1+n) SCID(1+n), of an Initial TOKEN(i+n), then, but not in a
 * Retry, LENGTH(i) NUMBER(1-4) PAYLOAD. Null where it is none, of another version, or cut.
 */
function longHeaderAt(bytes: Uint8Array, start: number): LongHeader | null {
  const first = byteAt(bytes, start);
  if ((first & LONG_HEADER) === 0 || bytes.length - start < 7) return null;
  const number = new DataView(bytes.buffer, bytes.byteOffset).getUint32(start + 1);
  const version = QUIC_VERSIONS.find((known) => known.number === number);
  if (version === undefined) return null;
  const type = ((first >> 4) & 0b11) - version.initialType;
  if (type === -1 || type === 3) return null; // Retry: in both versions the type before Initial
  const reader = new FrameReader(bytes, start + 5);
  const connectionId = reader.bytes(reader.byte());
  reader.bytes(reader.byte());
  const isInitial = type === 0;
  if (isInitial) reader.bytes(reader.varint());
  const length = reader.varint();
  const end = reader.at + length;
  if (reader.isCut || connectionId.length > MAX_CONNECTION_ID_BYTES || end > bytes.length) return null;
  return { version, connectionId, isInitial, numberAt: reader.at, end };
}

/** Reads numbers and pieces; past the end everything is empty and `isCut` says so. */
class FrameReader {
  at: number;
  isCut = false;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array, at = 0) {
    this.#bytes = bytes;
    this.at = at;
  }

  get left(): number {
    return this.#bytes.length - this.at;
  }

  byte(): number {
    if (this.left < 1) return this.#cut();
    return byteAt(this.#bytes, this.at++);
  }

  bytes(size: number): Uint8Array {
    if (size > this.left) {
      this.#cut();
      return this.#bytes.subarray(0, 0);
    }
    this.at += size;
    return this.#bytes.subarray(this.at - size, this.at);
  }

  /** RFC 9000 §16; exact, because nothing above 2^53 fits into a datagram and is cut anyway. */
  varint(): number {
    const first = this.byte();
    let value = first & 0x3f;
    for (let more = (1 << (first >> 6)) - 1; more > 0; more--) value = value * 256 + this.byte();
    return value;
  }

  #cut(): number {
    this.isCut = true;
    this.at = this.#bytes.length;
    return 0;
  }
}

const FRAME = { padding: 0x00, ping: 0x01, ack: 0x02, ackEcn: 0x03, crypto: 0x06 } as const;

/** The frames that a client's Initial may hold (RFC 9000 §17.2.2); reading stops at any other. */
function readFrames(payload: Uint8Array, stream: CryptoStream): void {
  const reader = new FrameReader(payload);
  while (reader.left > 0 && !reader.isCut) {
    const type = reader.byte();
    if (type === FRAME.padding || type === FRAME.ping) continue;
    if (type === FRAME.crypto) {
      const offset = reader.varint();
      const data = reader.bytes(reader.varint());
      if (!reader.isCut) stream.add(offset, data);
    } else if (type === FRAME.ack || type === FRAME.ackEcn) skipAck(reader, type === FRAME.ackEcn);
    else return;
  }
}

/** LARGEST(i) DELAY(i) COUNT(i) FIRST(i) COUNT × (GAP(i) LENGTH(i)) [ECT0(i) ECT1(i) CE(i)] (RFC 9000 §19.3) */
function skipAck(reader: FrameReader, hasEcn: boolean): void {
  reader.varint();
  reader.varint();
  const ranges = reader.varint();
  reader.varint();
  for (let left = ranges * 2 + (hasEcn ? 3 : 0); left > 0 && !reader.isCut; left--) reader.varint();
}

export const quic: SniffProtocol = { type: "QUIC", network: "udp", open: () => new QuicProbe() };
