/**
 * Gecko: salamander, and packets of the handshake, which have a known size and form, go in parts of random sizes. Packets
 * with a short header are as salamander has them. A part (hysteria2-tuic.md §1.5), inside of salamander:
 * 0x80, MESSAGE(1), INDEX(4 bits) COUNT(4 bits), PADDED(2, big endian), that much padding, a piece of the packet.
 */
import { randomFillSync, randomInt } from "node:crypto";
import { byteAt } from "#lib/at.ts";
import type { PacketFilter } from "#transport/quic/packet-filter.ts";
import { GeckoParts } from "./gecko-parts.ts";
import { salamander } from "./salamander.ts";

const PART = 0x80;
const HEAD_BYTES = 5;
const LEAST_PARTS = 2;
const MOST_PARTS = 8;
export const DEFAULT_SIZES = { least: 512, most: 1200 };
export const MOST_SIZE = 2048;

/** Of UDP payloads that carry a part, in bytes; longer where the piece alone is. */
export interface PartSizes {
  readonly least: number;
  readonly most: number;
}

export function gecko(password: string, sizes: PartSizes = DEFAULT_SIZES): PacketFilter {
  const inner = salamander(password);
  const parts = new GeckoParts();
  const out = Buffer.alloc(MOST_SIZE + 65_535);
  const before = inner.overheadBytes + HEAD_BYTES;
  let message = randomInt(256);
  return {
    overheadBytes: inner.overheadBytes,
    seal(datagram, to, send) {
      if ((byteAt(datagram, 0) & PART) === 0) return inner.seal(datagram, to, send);
      const count = randomInt(LEAST_PARTS, MOST_PARTS + 1);
      const pieceBytes = Math.floor(datagram.length / count);
      message = (message + 1) & 0xff;
      for (let index = 0; index < count; index++) {
        const end = index === count - 1 ? datagram.length : (index + 1) * pieceBytes;
        const piece = datagram.subarray(index * pieceBytes, end);
        const padded = paddingFor(before + piece.length, sizes);
        out.writeUInt32BE(((PART << 24) | (message << 16) | (index << 12) | (count << 8)) >>> 0);
        out.writeUInt16BE(padded, 3);
        randomFillSync(out, HEAD_BYTES, padded);
        out.set(piece, HEAD_BYTES + padded);
        inner.seal(out.subarray(0, HEAD_BYTES + padded + piece.length), to, send);
      }
    },
    open(wire, from) {
      const datagram = inner.open(wire, from);
      if (datagram === null || (byteAt(datagram, 0) & PART) === 0) return datagram;
      if (datagram.length < HEAD_BYTES) return null;
      const place = byteAt(datagram, 2);
      const at = HEAD_BYTES + byteAt(datagram, 3) * 256 + byteAt(datagram, 4);
      const part = { message: byteAt(datagram, 1), index: place >> 4, count: place & 0x0f };
      const isOne = part.count > 0 && part.count <= MOST_PARTS && part.index < part.count;
      if (!isOne || at > datagram.length || datagram.length > MOST_SIZE) return null;
      const source = from === null ? "" : `${from.ip} ${from.port}`;
      return parts.take(source, part, datagram.subarray(at), performance.now());
    },
  };
}

/** Random bytes for a payload that has `bytes` without them. */
function paddingFor(bytes: number, { least, most }: PartSizes): number {
  const from = Math.max(least, bytes);
  return from > most ? 0 : randomInt(from, most + 1) - bytes;
}
