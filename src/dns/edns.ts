/** The OPT record of queries that leave this program (RFC 6891, RFC 7871). */
import type { IpPrefix } from "#core/session.ts";
import { bytesOfIp } from "#net/ip.ts";
import { OUR_UDP_BYTES } from "./answer.ts";
import type { Edns, Query } from "./query.ts";
import { EDNS_CLIENT_SUBNET, EDNS_DO, FLAG, HEADER_BYTES, TYPE } from "./types.ts";

interface EdnsOption {
  readonly code: number;
  readonly data: Uint8Array;
}

/**
 * The query as it goes out: one question, recursion desired as asked, the asker's OPT without the options that concern
 * only the hop between the asker and us. Id 0: every transport puts its own.
 */
export function outgoingQuery(query: Query): Uint8Array {
  const options = query.edns === null ? [] : optionsOf(query.edns.options);
  const passed = options.filter(({ code }) => code === EDNS_CLIENT_SUBNET);
  return encodeQuery(query, query.edns === null ? null : { ...query.edns, options: encodeOptions(passed) });
}

/** Adds the subnet, or replaces one that is there when `override` is set. */
export function withClientSubnet(query: Query, subnet: IpPrefix, override: boolean): Uint8Array {
  const present = query.edns === null ? [] : optionsOf(query.edns.options);
  const has = present.some(({ code }) => code === EDNS_CLIENT_SUBNET);
  if (has && !override) return query.bytes;
  const others = present.filter(({ code }) => code !== EDNS_CLIENT_SUBNET);
  const options = encodeOptions([...others, { code: EDNS_CLIENT_SUBNET, data: subnetData(subnet) }]);
  const edns = query.edns ?? { udpBytes: OUR_UDP_BYTES, dnssecOk: false, options };
  return encodeQuery(query, { ...edns, options });
}

// ECS (RFC 7871 §6): FAMILY(2) SOURCE PREFIX-LENGTH(1) SCOPE PREFIX-LENGTH(1)=0 ADDRESS (as many bytes as needed)
function subnetData({ ip, bits }: IpPrefix): Uint8Array {
  const address = bytesOfIp(ip);
  const data = Buffer.alloc(4 + Math.ceil(bits / 8));
  data.writeUInt16BE(address.length === 4 ? 1 : 2, 0);
  data[2] = bits;
  data.set(address.subarray(0, data.length - 4), 4);
  const rest = bits % 8;
  if (rest !== 0) data[data.length - 1] = (data.at(-1) as number) & (0xff << (8 - rest));
  return data;
}

/** Stops at the first option that does not fit: what follows cannot be told apart. */
function optionsOf(bytes: Uint8Array): readonly EdnsOption[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const options: EdnsOption[] = [];
  for (let at = 0; at + 4 <= bytes.length;) {
    const end = at + 4 + view.getUint16(at + 2);
    if (end > bytes.length) break;
    options.push({ code: view.getUint16(at), data: bytes.subarray(at + 4, end) });
    at = end;
  }
  return options;
}

function encodeOptions(options: readonly EdnsOption[]): Uint8Array {
  const parts = options.flatMap(({ code, data }) => {
    const head = Buffer.alloc(4);
    head.writeUInt16BE(code, 0);
    head.writeUInt16BE(data.length, 2);
    return [head, data];
  });
  return Buffer.concat(parts);
}

function encodeQuery({ bytes, flags, questionEnd }: Query, edns: Edns | null): Uint8Array {
  const out = Buffer.alloc(questionEnd + (edns === null ? 0 : 11 + edns.options.length));
  out.set(bytes.subarray(HEADER_BYTES, questionEnd), HEADER_BYTES);
  out.writeUInt16BE(flags & (FLAG.RD | FLAG.AD | FLAG.CD), 2);
  out.writeUInt16BE(1, 4);
  if (edns === null) return out;
  out.writeUInt16BE(1, 10);
  out.writeUInt16BE(TYPE.OPT, questionEnd + 1);
  out.writeUInt16BE(OUR_UDP_BYTES, questionEnd + 3);
  out.writeUInt32BE(edns.dnssecOk ? EDNS_DO : 0, questionEnd + 5);
  out.writeUInt16BE(edns.options.length, questionEnd + 9);
  out.set(edns.options, questionEnd + 11);
  return out;
}
