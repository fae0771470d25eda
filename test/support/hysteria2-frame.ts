/** A frame of a datagram of hysteria2 in one piece, as it arrives. */
import { encodeUdpHead, numberUdpHead, type UdpPart } from "#protocols/hysteria2/wire.ts";

export function udpFrame(
  session: number,
  part: UdpPart,
  { address, data }: { readonly address: string; readonly data: Uint8Array },
): Buffer {
  const head = encodeUdpHead(session, address);
  numberUdpHead(head, part);
  return Buffer.concat([head, data]);
}
