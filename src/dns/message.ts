/**
 * The DNS message (RFC 1035 §4) as a value. Used where a message is taken apart or put together: aliases, removed
 * records, `/dns/query`. Answers that only pass through stay bytes (`packet.ts`).
 */
import { ProtocolError } from "#core/errors.ts";
import { labelsOf, readName } from "./name.ts";
import { plainData, splitData } from "./rdata.ts";
import { HEADER_BYTES, MAX_MESSAGE_BYTES } from "./types.ts";

export interface Question {
  readonly name: string;
  readonly type: number;
  readonly class: number;
}

export interface ResourceRecord {
  readonly name: string;
  readonly type: number;
  readonly class: number;
  /** Seconds, 0 to 2³²−1 as on the wire; for OPT it is no TTL. */
  readonly ttl: number;
  /** Wire form. Names in it are written out in full; data of unknown types is carried untouched. */
  readonly data: Uint8Array;
}

export interface Message {
  readonly id: number;
  /** The whole flags word with opcode and rcode. */
  readonly flags: number;
  readonly questions: readonly Question[];
  readonly answers: readonly ResourceRecord[];
  readonly authorities: readonly ResourceRecord[];
  readonly additionals: readonly ResourceRecord[];
}

/** Throws `ProtocolError`. Bytes after the last counted record are ignored. */
export function decodeMessage(bytes: Uint8Array): Message {
  if (bytes.length < HEADER_BYTES) throw new ProtocolError("DNS message is shorter than its header");
  if (bytes.length > MAX_MESSAGE_BYTES) throw new ProtocolError("DNS message is longer than 65535 bytes");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const questionCount = view.getUint16(4);
  const answerCount = view.getUint16(6);
  const authorityCount = view.getUint16(8);
  const additionalCount = view.getUint16(10);
  // A question takes 5 bytes at least, a record 11.
  const recordCount = answerCount + authorityCount + additionalCount;
  if (questionCount * 5 + recordCount * 11 > bytes.length - HEADER_BYTES)
    throw new ProtocolError("DNS message counts more records than it can hold");
  let at = HEADER_BYTES;
  const questions: Question[] = [];
  for (let index = 0; index < questionCount; index++) {
    const { name, end } = readName(bytes, at);
    if (end + 4 > bytes.length) throw new ProtocolError("DNS question runs past the end");
    questions.push({ name, type: view.getUint16(end), class: view.getUint16(end + 2) });
    at = end + 4;
  }
  const section = (count: number) => {
    const records: ResourceRecord[] = [];
    for (let index = 0; index < count; index++) {
      const [record, end] = decodeRecord(bytes, view, at);
      records.push(record);
      at = end;
    }
    return records;
  };
  const [answers, authorities, additionals] = [
    section(answerCount),
    section(authorityCount),
    section(additionalCount),
  ];
  return { id: view.getUint16(0), flags: view.getUint16(2), questions, answers, authorities, additionals };
}

// Record (RFC 1035 §4.1.3): NAME TYPE(2) CLASS(2) TTL(4) RDLENGTH(2) RDATA
function decodeRecord(bytes: Uint8Array, view: DataView, at: number): [ResourceRecord, number] {
  const { name, end: fixed } = readName(bytes, at);
  if (fixed + 10 > bytes.length) throw new ProtocolError("DNS record runs past the end");
  const type = view.getUint16(fixed);
  const start = fixed + 10;
  const end = start + view.getUint16(fixed + 8);
  if (end > bytes.length) throw new ProtocolError("DNS record data runs past the end");
  const data = plainData(bytes, type, start, end);
  return [{ name, type, class: view.getUint16(fixed + 2), ttl: view.getUint32(fixed + 4), data }, end];
}

/** With name compression. Throws `ProtocolError` where a name is impossible or the whole exceeds 65,535 bytes. */
export function encodeMessage(message: Message): Uint8Array {
  const writer = new MessageWriter();
  writer.u16(message.id);
  writer.u16(message.flags);
  const sections = [message.answers, message.authorities, message.additionals];
  for (const list of [message.questions, ...sections]) writer.u16(list.length);
  for (const question of message.questions) {
    writer.name(question.name);
    writer.u16(question.type);
    writer.u16(question.class);
  }
  for (const section of sections) for (const record of section) writer.record(record);
  return writer.done();
}

class MessageWriter {
  #bytes = Buffer.allocUnsafe(512);
  #at = 0;
  /** Where each suffix was first written; only offsets that a pointer can name (14 bits). */
  readonly #suffixes = new Map<string, number>();

  u16(value: number): void {
    this.#room(2);
    this.#at = this.#bytes.writeUInt16BE(value, this.#at);
  }

  u32(value: number): void {
    this.#room(4);
    this.#at = this.#bytes.writeUInt32BE(value, this.#at);
  }

  raw(data: Uint8Array): void {
    this.#room(data.length);
    this.#bytes.set(data, this.#at);
    this.#at += data.length;
  }

  name(name: string): void {
    const labels = labelsOf(name);
    const keys = labels.map((label) => Buffer.from(label).toString("hex"));
    for (const [index, label] of labels.entries()) {
      const suffix = keys.slice(index).join(".");
      const known = this.#suffixes.get(suffix);
      if (known !== undefined) return this.u16(0xc000 | known);
      if (this.#at < 0x4000) this.#suffixes.set(suffix, this.#at);
      this.raw(Uint8Array.of(label.length));
      this.raw(label);
    }
    this.raw(Uint8Array.of(0));
  }

  record({ name, type, class: klass, ttl, data }: ResourceRecord): void {
    this.name(name);
    this.u16(type);
    this.u16(klass);
    this.u32(ttl);
    const lengthAt = this.#at;
    this.u16(0);
    const split = splitData(data, type, 0, data.length);
    if (split === null || !split.compress) this.raw(data);
    else {
      this.raw(split.before);
      for (const inner of split.names) this.name(inner);
      this.raw(split.after);
    }
    this.#bytes.writeUInt16BE(this.#at - lengthAt - 2, lengthAt);
  }

  done(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  #room(size: number): void {
    const needed = this.#at + size;
    if (needed > MAX_MESSAGE_BYTES) throw new ProtocolError("DNS message would exceed 65535 bytes");
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.min(MAX_MESSAGE_BYTES, Math.max(needed, this.#bytes.length * 2)));
    this.#bytes.copy(grown, 0, 0, this.#at);
    this.#bytes = grown;
  }
}
