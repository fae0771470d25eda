/** The Huffman code of HPACK and QPACK (RFC 7541 appendix B). */
import { byteAt, itemAt } from "#lib/at.ts";

// oxfmt-ignore
/** Bits of the code of each byte. The code is canonical: equal lengths count upwards by the byte. */
const LENGTHS = [
13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const MOST_BITS = 30;
/** What is left over at the end is the beginning of the end mark, which is all ones. */
const MOST_PADDING_BITS = 7;

interface Code {
  /** Of each length: the first code of it, and where its bytes begin in `bytes`. */
  readonly first: readonly number[];
  readonly counts: readonly number[];
  readonly starts: readonly number[];
  readonly bytes: readonly number[];
}

const CODE = makeCode();

function makeCode(): Code {
  const bytes: number[] = [];
  const [first, counts, starts]: [number[], number[], number[]] = [[0], [0], [0]];
  let next = 0;
  for (let bits = 1; bits <= MOST_BITS; bits++) {
    next *= 2;
    const found = LENGTHS.flatMap((length, byte) => (length === bits ? [byte] : []));
    first.push(next);
    starts.push(bytes.length);
    counts.push(found.length);
    bytes.push(...found);
    next += found.length;
  }
  return { first, counts, starts, bytes };
}

/** Null where the bytes are no such text, or it is longer than `most`. */
export function decodeHuffman(encoded: Uint8Array, most: number): Buffer | null {
  const out: number[] = [];
  let code = 0;
  let bits = 0;
  for (let at = 0; at < encoded.length * 8; at++) {
    code = code * 2 + ((byteAt(encoded, at >> 3) >> (7 - (at & 7))) & 1);
    if (++bits > MOST_BITS) return null;
    const place = code - itemAt(CODE.first, bits);
    if (place < 0 || place >= itemAt(CODE.counts, bits)) continue;
    const byte = itemAt(CODE.bytes, itemAt(CODE.starts, bits) + place);
    if (byte > 0xff || out.length === most) return null; // the end mark must not be there
    out.push(byte);
    code = bits = 0;
  }
  const isPadded = bits <= MOST_PADDING_BITS && code === 2 ** bits - 1;
  return isPadded ? Buffer.from(out) : null;
}
