/** struct virtio_net_hdr, in front of each packet: what is left to the kernel to do. */
import { NEEDS_CHECKSUM, VNET_BYTES } from "#platform/tun.ts";

const LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** What lies behind the headers, which end at `payloadAt`, is to be cut into pieces of `size`. */
export function leaveCutting(view: DataView, type: number, payloadAt: number, size: number): void {
  view.setUint8(1, type);
  view.setUint16(2, payloadAt - VNET_BYTES, LITTLE_ENDIAN);
  view.setUint16(4, size, LITTLE_ENDIAN);
}

/** The size of the pieces. */
export function pieceSize(view: DataView): number {
  return view.getUint16(4, LITTLE_ENDIAN);
}

/** The sum from `at` on goes to `offset` behind it, where that of the pseudo-header is. */
export function leaveChecksum(view: DataView, at: number, offset: number): void {
  view.setUint8(0, NEEDS_CHECKSUM);
  view.setUint16(6, at - VNET_BYTES, LITTLE_ENDIAN);
  view.setUint16(8, offset, LITTLE_ENDIAN);
}
