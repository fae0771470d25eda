/** Answers as people and dashboards read them: presentation form (RFC 1035 §5, RFC 9460 §2.1). */
import type { DnsAnswerView, DnsRecordView } from "#core/control.ts";
import { ProtocolError } from "#core/errors.ts";
import { ipFromBytes } from "#net/address/ip.ts";
import type { Aged } from "./cache.ts";
import { decodeMessage, type ResourceRecord } from "./message.ts";
import { splitData } from "./rdata.ts";
import { svcbText } from "./svcb.ts";
import { FLAG, RCODE_MASK, TYPE } from "./types.ts";
import { byteAt } from "#lib/at.ts";

export function viewOf({ packet, takeSeconds }: Aged): DnsAnswerView {
  const message = decodeMessage(packet.bytes);
  const { flags } = message;
  const age = (ttl: number) => (takeSeconds === 0 ? ttl : Math.max(1, ttl - takeSeconds));
  const section = (records: readonly ResourceRecord[]): DnsRecordView[] =>
    records.map((record) => ({
      name: `${record.name}.`,
      type: record.type,
      ttlSeconds: age(record.ttl),
      data: dataText(record),
    }));
  return {
    status: flags & RCODE_MASK,
    truncated: (flags & FLAG.TC) !== 0,
    recursionDesired: (flags & FLAG.RD) !== 0,
    recursionAvailable: (flags & FLAG.RA) !== 0,
    authenticData: (flags & FLAG.AD) !== 0,
    checkingDisabled: (flags & FLAG.CD) !== 0,
    answers: section(message.answers),
    authority: section(message.authorities),
    additional: section(message.additionals),
  };
}

/** Unknown types, and data that does not fit its type, come as `\# length hex` (RFC 3597 §5). */
export function dataText({ type, data }: ResourceRecord): string {
  const view = new DataView(data.buffer, data.byteOffset, data.length);
  if ((type === TYPE.A && data.length === 4) || (type === TYPE.AAAA && data.length === 16))
    return ipFromBytes(data);
  if (type === TYPE.TXT || type === SPF) return stringsText(data) ?? unknownText(data);
  if (type === TYPE.SVCB || type === TYPE.HTTPS) return tryText(() => svcbText(data)) ?? unknownText(data);
  if (type === CAA) return caaText(data) ?? unknownText(data);
  const split = splitData(data, type, 0, data.length);
  if (split === null) return unknownText(data);
  if (type === TYPE.NAPTR) {
    const texts = stringsText(split.before.subarray(4)) ?? "";
    return `${view.getUint16(0)} ${view.getUint16(2)} ${texts} ${split.names[0]}.`;
  }
  const names = split.names.map((name) => `${name}.`);
  const before = Array.from({ length: split.before.length / 2 }, (_, at) => view.getUint16(at * 2));
  const tail = data.length - split.after.length;
  const after = Array.from({ length: split.after.length / 4 }, (_, at) => view.getUint32(tail + at * 4));
  return [...before, ...names, ...after].join(" ");
}

const SPF = 99;
const CAA = 257;

function tryText(read: () => string): string | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}

function unknownText(data: Uint8Array): string {
  return `\\# ${data.length} ${Buffer.from(data).toString("hex")}`.trimEnd();
}

/** Character strings in quotes; null where a length runs past the end. */
function stringsText(data: Uint8Array): string | null {
  const parts: string[] = [];
  for (let at = 0; at < data.length;) {
    const end = at + 1 + byteAt(data, at);
    if (end > data.length) return null;
    parts.push(quoted(data.subarray(at + 1, end)));
    at = end;
  }
  return parts.join(" ");
}

// CAA (RFC 8659 §4.1): FLAGS(1) TAG LENGTH(1) TAG VALUE
function caaText(data: Uint8Array): string | null {
  const tagEnd = 2 + (data[1] ?? 0);
  if (data.length < 2 || tagEnd > data.length) return null;
  const tag = Buffer.from(data.subarray(2, tagEnd)).toString("latin1");
  return /^[a-z0-9]+$/i.test(tag) ? `${data[0]} ${tag} ${quoted(data.subarray(tagEnd))}` : null;
}

function quoted(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) {
    if (byte === 0x22 || byte === 0x5c) text += `\\${String.fromCharCode(byte)}`;
    else if (byte >= 0x20 && byte < 0x7f) text += String.fromCharCode(byte);
    else text += `\\${String(byte).padStart(3, "0")}`;
  }
  return `"${text}"`;
}
