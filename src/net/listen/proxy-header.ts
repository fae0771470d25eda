/** What tells a server behind us whose connection it is (the PROXY protocol of HAProxy). */
import { bytesOfIp, familyOf } from "#net/address/ip.ts";
import type { ConnectionEnds } from "./accept.ts";

/** PROXY protocol, version 1 (text) or 2 (binary). */
export function proxyHeader(
  version: number,
  source: ConnectionEnds["source"],
  local: ConnectionEnds["local"],
): Buffer {
  const v4 = familyOf(source.ip) === 4 && familyOf(local.ip) === 4;
  if (version === 1) {
    const family = v4 ? "TCP4" : "TCP6";
    return Buffer.from(`PROXY ${family} ${source.ip} ${local.ip} ${source.port} ${local.port}\r\n`);
  }
  const size = v4 ? 4 : 16;
  const out = Buffer.alloc(16 + 2 * size + 4);
  out.write("0d0a0d0a000d0a515549540a", 0, "hex");
  out[12] = 0x21; // version 2, PROXY
  out[13] = v4 ? 0x11 : 0x21;
  out.writeUInt16BE(2 * size + 4, 14);
  padded(bytesOfIp(source.ip), size).copy(out, 16);
  padded(bytesOfIp(local.ip), size).copy(out, 16 + size);
  out.writeUInt16BE(source.port, 16 + 2 * size);
  out.writeUInt16BE(local.port, 18 + 2 * size);
  return out;
}

/** An IPv4 address beside an IPv6 one is written as mapped. */
function padded(address: Uint8Array, size: number): Buffer {
  if (address.length === size) return Buffer.from(address);
  return Buffer.concat([Buffer.from("00000000000000000000ffff", "hex"), address]);
}
