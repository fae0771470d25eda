/** The OPT record of queries that leave this program (RFC 6891, RFC 7871). */
import { ProtocolError } from "#core/errors.ts";
import type { IpPrefix } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { lastOf } from "#lib/at.ts";
import { OUR_UDP_BYTES } from "./answer.ts";
import { walkName } from "./name.ts";
import { type RecordPosition, walkRecords } from "./packet.ts";
import { type Edns, type Query, QueryReader } from "./query.ts";
import {
  EDNS_CLIENT_SUBNET,
  EDNS_DO,
  EDNS_PADDING,
  FLAG,
  HEADER_BYTES,
  MAX_MESSAGE_BYTES,
  TYPE,
} from "./types.ts";

/** Queries of encrypted transports have a multiple of this length (RFC 8467 §4.1). */
const PADDED_BYTES = 128;
const PADDED_ANSWER_BYTES = 468;

/**
 * The query as it goes out: one question, the asker's OPT without the options that concern only the hop between the
 * asker and us. Recursion is desired, whatever the asker said: servers are asked for answers, and theirs are shared with
 * others. Id 0: every transport puts its own.
 */
export function outgoingQuery(query: Query): Uint8Array {
  return encodeQuery(query, query.edns);
}

/** Adds the subnet, or replaces one that is there when `override` is set. */
export function withClientSubnet(query: Query, subnet: IpPrefix, override: boolean): Uint8Array {
  const has = query.edns !== null && query.edns.subnet !== null;
  if (has && !override) return query.bytes;
  return encodeQuery(query, { dnssecOk: query.edns?.dnssecOk ?? false, subnet: subnetData(subnet) });
}

/**
 * The query of an encrypted transport whose own packets are not padded, so that its length does not tell the name (RFC 9250
 * §5.4). Id 0. Throws `ProtocolError` where it is no query.
 */
export function paddedQuery(bytes: Uint8Array): Uint8Array {
  const query = new QueryReader().read(bytes);
  if (query === null) throw new ProtocolError("DNS query without a question");
  const { dnssecOk, subnet } = query.edns ?? { dnssecOk: false, subnet: null };
  return encodeQuery(query, { dnssecOk, subnet }, PADDED_BYTES);
}

/**
 * The same of an answer, where it has an OPT as its last record, as ours have (RFC 8467 §4.1): a client that sent none is
 * not told of padding.
 */
export function paddedAnswer(answer: Uint8Array): Uint8Array {
  const opt = optOf(answer);
  const size = Math.ceil((answer.length + 4) / PADDED_ANSWER_BYTES) * PADDED_ANSWER_BYTES;
  if (opt === null || opt.end !== answer.length || size > MAX_MESSAGE_BYTES) return answer;
  const out = Buffer.alloc(size);
  out.set(answer);
  out.writeUInt16BE(size - opt.dataAt, opt.dataAt - 2);
  out.writeUInt16BE(EDNS_PADDING, answer.length);
  out.writeUInt16BE(size - answer.length - 4, answer.length + 2);
  return out;
}

/** Has the message an option of this code? Throws `ProtocolError` where it cannot be read. */
export function hasOption(message: Uint8Array, code: number): boolean {
  const opt = optOf(message);
  if (opt === null) return false;
  const view = new DataView(message.buffer, message.byteOffset, message.length);
  for (let at = opt.dataAt; at + 4 <= opt.end; at += 4 + view.getUint16(at + 2))
    if (view.getUint16(at) === code) return true;
  return false;
}

/** Null: there is none, or no question. */
function optOf(message: Uint8Array): RecordPosition | null {
  if (message.length < HEADER_BYTES || message[4] !== 0 || message[5] !== 1) return null;
  let found: RecordPosition | null = null;
  walkRecords(message, walkName(message, HEADER_BYTES) + 4, (one) => {
    if (one.type === TYPE.OPT) found = one;
  });
  return found;
}

// ECS (RFC 7871 §6): FAMILY(2) SOURCE PREFIX-LENGTH(1) SCOPE PREFIX-LENGTH(1)=0 ADDRESS (as many bytes as needed)
function subnetData({ ip, bits }: IpPrefix): Uint8Array {
  const address = bytesOfIp(ip);
  const data = Buffer.alloc(4 + Math.ceil(bits / 8));
  data.writeUInt16BE(address.length === 4 ? 1 : 2, 0);
  data[2] = bits;
  data.set(address.subarray(0, data.length - 4), 4);
  const rest = bits % 8;
  if (rest !== 0) data[data.length - 1] = lastOf(data) & (0xff << (8 - rest));
  return data;
}

// OPT (RFC 6891 §6.1.2): NAME(1)=0 TYPE(2)=41 CLASS(2)=UDP size TTL(4)=ext. rcode, version, flags RDLENGTH(2), then
// options of CODE(2) LENGTH(2) DATA
/** `multiple`: the whole message is padded to one of this length (RFC 7830); 1: it is not. */
function encodeQuery(
  { bytes, flags, questionEnd }: Query,
  edns: Pick<Edns, "dnssecOk" | "subnet"> | null,
  multiple = 1,
): Uint8Array {
  const subnet = edns?.subnet ?? null;
  const subnetBytes = subnet === null ? 0 : 4 + subnet.length;
  const bareBytes = questionEnd + (edns === null ? 0 : 11 + subnetBytes);
  const size = multiple === 1 ? bareBytes : Math.ceil((bareBytes + 4) / multiple) * multiple;
  const out = Buffer.alloc(size);
  out.set(bytes.subarray(HEADER_BYTES, questionEnd), HEADER_BYTES);
  out.writeUInt16BE(FLAG.RD | (flags & (FLAG.AD | FLAG.CD)), 2);
  out.writeUInt16BE(1, 4);
  if (edns === null) return out;
  out.writeUInt16BE(1, 10);
  out.writeUInt16BE(TYPE.OPT, questionEnd + 1);
  out.writeUInt16BE(OUR_UDP_BYTES, questionEnd + 3);
  out.writeUInt32BE(edns.dnssecOk ? EDNS_DO : 0, questionEnd + 5);
  out.writeUInt16BE(size - questionEnd - 11, questionEnd + 9);
  let at = questionEnd + 11;
  const option = (code: number, data: Uint8Array): void => {
    out.writeUInt16BE(code, at);
    out.writeUInt16BE(data.length, at + 2);
    out.set(data, at + 4);
    at += 4 + data.length;
  };
  if (subnet !== null) option(EDNS_CLIENT_SUBNET, subnet);
  if (size > bareBytes) option(EDNS_PADDING, Buffer.alloc(size - at - 4));
  return out;
}
