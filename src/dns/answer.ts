/** Writing answers: from a kept packet, or from a handful of records made here. */
import type { Aged } from "./cache.ts";
import { decodeMessage, encodeMessage, type ResourceRecord } from "./message.ts";
import { openPacket, type Packet, readU32, recordEnd, writeU32 } from "./packet.ts";
import type { Query } from "./query.ts";
import { CLASS_IN, EDNS_DO, FLAG, HEADER_BYTES, OPCODE_MASK, RCODE_MASK, TYPE } from "./types.ts";
import { byteAt, itemAt } from "#lib/at.ts";

/** What we say we can take, and what does not fragment on common paths. */
export const OUR_UDP_BYTES = 1232;
// OPT (RFC 6891 §6.1.2): NAME(1)=0 TYPE(2)=41 CLASS(2)=UDP size TTL(4)=ext. rcode, version, flags RDLENGTH(2)
const OPT_BYTES = 11;

/**
 * The answer as this asker shall see it: its id, its spelling of the name, its OPT, TTLs lowered by the answer's age,
 * cut to `maxBytes` with TC set. A new buffer; `aged.packet` is not touched.
 */
export function finishAnswer(query: Query, aged: Aged, maxBytes: number): Uint8Array {
  const { bytes: source, questionEnd, rcode, ttlOffsets } = aged.packet;
  const room = maxBytes - (query.edns === null ? 0 : OPT_BYTES);
  const within = source.length <= room ? null : recordsWithin(aged.packet, room);
  const kept = within?.end ?? source.length;
  const out = Buffer.allocUnsafe(kept + (query.edns === null ? 0 : OPT_BYTES));
  out.set(kept === source.length ? source : source.subarray(0, kept), 0);
  // Name and class of the question are those of the key; only the spelling may differ.
  if (query.questionEnd === questionEnd)
    for (let at = HEADER_BYTES; at < questionEnd; at++) out[at] = byteAt(query.bytes, at);
  const cut = within === null ? 0 : FLAG.TC;
  const kinds = (out.readUInt16BE(2) & (FLAG.TC | FLAG.AD)) | FLAG.QR | FLAG.AA | FLAG.RA | cut;
  out.writeUInt16BE(query.id, 0);
  out.writeUInt16BE(kinds | (query.flags & (OPCODE_MASK | FLAG.RD | FLAG.CD)) | rcode, 2);
  if (within !== null) countKept(out, within.count);
  if (aged.takeSeconds > 0) {
    for (let index = 0; index < ttlOffsets.length; index++) {
      const at = itemAt(ttlOffsets, index);
      if (at >= kept) break;
      writeU32(out, at, Math.max(1, readU32(out, at) - aged.takeSeconds));
    }
  }
  if (query.edns !== null) writeOpt(out, kept, query.edns.dnssecOk);
  return out;
}

function writeOpt(out: Buffer, at: number, dnssecOk: boolean): void {
  out[at] = 0;
  out.writeUInt16BE(TYPE.OPT, at + 1);
  out.writeUInt16BE(OUR_UDP_BYTES, at + 3);
  out.writeUInt32BE(dnssecOk ? EDNS_DO : 0, at + 5);
  out.writeUInt16BE(0, at + 9);
  out.writeUInt16BE(out.readUInt16BE(10) + 1, 10);
}

/**
 * How many records lie wholly inside `room`, and where the last of them ends. Compression points back only, so a prefix stays
 * sound.
 */
function recordsWithin(
  { bytes, questionEnd, ttlOffsets }: Packet,
  room: number,
): { readonly count: number; readonly end: number } {
  let [count, end] = [0, questionEnd];
  for (const ttlAt of ttlOffsets) {
    const next = recordEnd(bytes, ttlAt);
    if (next > room) break;
    count++;
    end = next;
  }
  return { count, end };
}

/** Into the counts of the three sections. */
function countKept(out: Buffer, kept: number): void {
  let left = kept;
  for (const at of [6, 8, 10]) {
    const inSection = Math.min(left, out.readUInt16BE(at));
    out.writeUInt16BE(inSection, at);
    left -= inSection;
  }
}

/** An answer without records: its question (if the query had a readable one) and the code. */
export function bareAnswer(query: Query, rcode: number): Packet {
  return answerOf(query, [], rcode);
}

export interface OwnRecord {
  readonly type: number;
  readonly ttl: number;
  readonly data: Uint8Array;
}

/** Records that all belong to the question's name. */
export function answerOf(query: Query, records: readonly OwnRecord[], rcode = 0): Packet {
  const size = records.reduce((sum, { data }) => sum + 12 + data.length, query.questionEnd);
  const bytes = Buffer.alloc(size);
  bytes.set(query.bytes.subarray(0, query.questionEnd));
  bytes.writeUInt16BE(FLAG.QR | rcode, 2);
  bytes.writeUInt16BE(1, 4);
  bytes.writeUInt16BE(records.length, 6);
  bytes.writeUInt32BE(0, 8);
  const ttlOffsets = new Uint16Array(records.length);
  let at = query.questionEnd;
  for (const [index, { type, ttl, data }] of records.entries()) {
    at = bytes.writeUInt16BE(0xc000 | HEADER_BYTES, at); // the question's name
    at = bytes.writeUInt16BE(type, at);
    at = bytes.writeUInt16BE(CLASS_IN, at);
    ttlOffsets[index] = at;
    at = bytes.writeUInt32BE(ttl, at);
    at = bytes.writeUInt16BE(data.length, at);
    bytes.set(data, at);
    at += data.length;
  }
  const minTtl = records.length === 0 ? 0 : Math.min(...records.map(({ ttl }) => ttl));
  return { bytes, rcode, questionEnd: query.questionEnd, ttlOffsets, minTtl };
}

/** The answer for an alias: the CNAME first, then what was found for its target; the question is the asker's. */
export function behindAlias(query: Query, alias: Uint8Array, ttl: number, found: Aged): Packet {
  const { name, type, class: klass } = query;
  const target = decodeMessage(found.packet.bytes);
  const aged = (record: ResourceRecord) =>
    found.takeSeconds === 0 ? record : { ...record, ttl: Math.max(1, record.ttl - found.takeSeconds) };
  const cname = { name, type: TYPE.CNAME, class: CLASS_IN, ttl, data: alias };
  return openPacket(
    encodeMessage({
      ...target,
      flags: (target.flags & ~RCODE_MASK) | found.packet.rcode,
      questions: [{ name, type, class: klass }],
      answers: [cname, ...target.answers.map(aged)],
      authorities: target.authorities.map(aged),
      additionals: target.additionals.map(aged),
    }),
  );
}
