/** The OPT record of queries that leave this program (RFC 6891, RFC 7871). */
import type { IpPrefix } from "#core/session.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import { lastOf } from "#lib/at.ts";
import { OUR_UDP_BYTES } from "./answer.ts";
import type { Edns, Query } from "./query.ts";
import { EDNS_CLIENT_SUBNET, EDNS_DO, FLAG, HEADER_BYTES, TYPE } from "./types.ts";

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

function encodeQuery(
  { bytes, flags, questionEnd }: Query,
  edns: Pick<Edns, "dnssecOk" | "subnet"> | null,
): Uint8Array {
  const subnet = edns?.subnet ?? null;
  const optionBytes = subnet === null ? 0 : 4 + subnet.length;
  const out = Buffer.alloc(questionEnd + (edns === null ? 0 : 11 + optionBytes));
  out.set(bytes.subarray(HEADER_BYTES, questionEnd), HEADER_BYTES);
  out.writeUInt16BE(FLAG.RD | (flags & (FLAG.AD | FLAG.CD)), 2);
  out.writeUInt16BE(1, 4);
  if (edns === null) return out;
  out.writeUInt16BE(1, 10);
  out.writeUInt16BE(TYPE.OPT, questionEnd + 1);
  out.writeUInt16BE(OUR_UDP_BYTES, questionEnd + 3);
  out.writeUInt32BE(edns.dnssecOk ? EDNS_DO : 0, questionEnd + 5);
  out.writeUInt16BE(optionBytes, questionEnd + 9);
  if (subnet === null) return out;
  out.writeUInt16BE(EDNS_CLIENT_SUBNET, questionEnd + 11);
  out.writeUInt16BE(subnet.length, questionEnd + 13);
  out.set(subnet, questionEnd + 15);
  return out;
}
