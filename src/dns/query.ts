/** A question as a client asked it, read from the wire with as little work as a cached answer deserves. */
import { randomInt } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import { byteText, canonicalName, nameBytes } from "./name.ts";
import { type RecordPosition, readU32, walkRecords } from "./packet.ts";
import { CLASS_IN, EDNS_CLIENT_SUBNET, EDNS_DO, FLAG, HEADER_BYTES, TYPE } from "./types.ts";
import { byteAt } from "#lib/at.ts";

// ECS (RFC 7871 §6): two bytes of family, two of prefix lengths, and up to a whole IPv6 address.
const MIN_SUBNET_BYTES = 4;
const MAX_SUBNET_BYTES = 20;

export interface Edns {
  /** What the asker can take over UDP, at least 512. */
  readonly udpBytes: number;
  readonly dnssecOk: boolean;
  /** The subnet for which the asker wants the answer (RFC 7871 §6), as it came; null: none, or nothing that fits one. */
  readonly subnet: Uint8Array | null;
}

export interface Query {
  readonly bytes: Uint8Array;
  readonly id: number;
  readonly flags: number;
  /** Lower case, no final dot; the root is "". */
  readonly name: string;
  readonly type: number;
  readonly class: number;
  readonly questionEnd: number;
  readonly edns: Edns | null;
  /** Equal for questions that may share an answer: name, type, class, DNSSEC as it was asked for, the asker's subnet. */
  readonly key: string;
}

/** Reads queries. Holds a scratch buffer, so that a question costs two strings and one object. */
export class QueryReader {
  readonly #scratch = Buffer.alloc(1100); // 255 bytes of name, each up to 4 characters, and 26 of the key

  /**
   * Throws `ProtocolError` where it is no query or cut short. Answers null where it holds no question. Only the first
   * question counts.
   */
  read(bytes: Uint8Array): Query | null {
    if (bytes.length < HEADER_BYTES) throw new ProtocolError("DNS query is shorter than its header");
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const flags = view.getUint16(2);
    if ((flags & FLAG.QR) !== 0) throw new ProtocolError("DNS response where a query was expected");
    const questions = view.getUint16(4);
    if (questions === 0) return null;
    const [nameEnd, textEnd] = this.#readName(bytes);
    if (nameEnd + 4 > bytes.length) throw new ProtocolError("DNS question runs past the end");
    const questionEnd = nameEnd + 4;
    const edns = questions === 1 && view.getUint32(8) !== 0 ? readEdns(bytes, questionEnd) : null;
    const [type, klass] = [view.getUint16(nameEnd), view.getUint16(nameEnd + 2)];
    const scratch = this.#scratch;
    scratch[textEnd] = 0; // is in no name, so that no tail can be taken for the end of a longer one
    for (let at = 0; at < 4; at++) scratch[textEnd + 1 + at] = byteAt(bytes, nameEnd + at);
    scratch[textEnd + 5] = (edns?.dnssecOk === true ? 1 : 0) | (flags & (FLAG.AD | FLAG.CD));
    const subnet = edns?.subnet ?? null;
    if (subnet !== null) scratch.set(subnet, textEnd + 6);
    const key = scratch.toString("latin1", 0, textEnd + 6 + (subnet?.length ?? 0));
    const name = key.slice(0, textEnd);
    return { bytes, id: view.getUint16(0), flags, name, type, class: klass, questionEnd, edns, key };
  }

  /** Writes the lower-case text of the question's name into the scratch buffer. A question's name is never compressed. */
  #readName(bytes: Uint8Array): readonly [nameEnd: number, textEnd: number] {
    const scratch = this.#scratch;
    let at = HEADER_BYTES;
    let out = 0;
    for (;;) {
      const length = bytes[at++];
      if (length === undefined) throw new ProtocolError("DNS name runs past the end of the message");
      if (length === 0) return [at, out];
      if (length > 63 || at + length - HEADER_BYTES > 254 || at + length >= bytes.length)
        throw new ProtocolError("DNS question has an impossible name");
      if (out > 0) scratch[out++] = 46;
      for (const end = at + length; at < end; at++) {
        const byte = byteAt(bytes, at);
        if (byte >= 0x41 && byte <= 0x5a) scratch[out++] = byte + 32;
        else if (byte > 0x20 && byte < 0x7f && byte !== 46 && byte !== 92) scratch[out++] = byte;
        else out += scratch.write(byteText(byte), out, "latin1");
      }
    }
  }
}

function readEdns(bytes: Uint8Array, questionEnd: number): Edns | null {
  let found: RecordPosition | null = null;
  walkRecords(bytes, questionEnd, (offset) => {
    if (offset.type !== TYPE.OPT) return;
    if (found !== null) throw new ProtocolError("DNS query with two OPT records");
    found = offset;
  });
  if (found === null) return null;
  const { ttlAt, class: size, dataAt, end } = found as RecordPosition;
  const dnssecOk = (readU32(bytes, ttlAt) & EDNS_DO) !== 0;
  return { udpBytes: Math.max(512, size), dnssecOk, subnet: subnetIn(bytes.subarray(dataAt, end)) };
}

// OPT data (RFC 6891 §6.1.2): options of CODE(2) LENGTH(2) DATA
/** The first client subnet. Stops at an option whose length does not fit: the options behind it cannot be delimited. */
function subnetIn(options: Uint8Array): Uint8Array | null {
  const view = new DataView(options.buffer, options.byteOffset, options.length);
  for (let at = 0; at + 4 <= options.length;) {
    const length = view.getUint16(at + 2);
    const end = at + 4 + length;
    if (end > options.length) return null;
    if (view.getUint16(at) === EDNS_CLIENT_SUBNET)
      return length >= MIN_SUBNET_BYTES && length <= MAX_SUBNET_BYTES ? options.subarray(at + 4, end) : null;
    at = end;
  }
  return null;
}

/** The wire form of a question of our own: random id, recursion desired, no OPT. Throws `ProtocolError` on a bad name. */
export function encodeQuestion(name: string, type: number): Uint8Array {
  const wire = nameBytes(canonicalName(name));
  const bytes = new Uint8Array(HEADER_BYTES + wire.length + 4);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, randomInt(0x10000));
  view.setUint16(2, FLAG.RD);
  view.setUint16(4, 1);
  bytes.set(wire, HEADER_BYTES);
  view.setUint16(HEADER_BYTES + wire.length, type);
  view.setUint16(HEADER_BYTES + wire.length + 2, CLASS_IN);
  return bytes;
}
