/** What hostile peers make of a good message: altered, torn, repeated, joined with another, or nothing like it. */
import type { Chance } from "./chance.ts";

const TELLING = [0, 1, 2, 3, 4, 5, 0x0a, 0x0d, 0x20, 0x3f, 0x40, 0x7f, 0x80, 0xfe, 0xff];
const MAX_BYTES = 8192;

type Change = (bytes: Buffer, chance: Chance, seeds: readonly Buffer[]) => Buffer;

const inPlace =
  (change: (bytes: Buffer, at: number, chance: Chance) => void): Change =>
  (bytes, chance) => {
    if (bytes.length > 0) change(bytes, chance.below(bytes.length), chance);
    return bytes;
  };

const CHANGES: readonly Change[] = [
  inPlace((bytes, at, chance) => (bytes[at] = (bytes[at] as number) ^ (1 << chance.below(8)))),
  inPlace((bytes, at, chance) => (bytes[at] = chance.below(256))),
  inPlace((bytes, at, chance) => (bytes[at] = chance.of(TELLING))),
  inPlace((bytes, at, chance) => {
    for (let next = at; next < Math.min(at + 4, bytes.length); next++) bytes[next] = chance.of(TELLING);
  }),
  (bytes, chance) => bytes.subarray(0, chance.below(bytes.length + 1)),
  (bytes, chance) => bytes.subarray(chance.below(bytes.length + 1)),
  (bytes, chance) => Buffer.concat([bytes, chance.bytes(chance.below(40))]),
  (bytes, chance, seeds) => Buffer.concat([bytes, chance.of(seeds)]),
  (bytes, chance) => {
    const at = chance.below(bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), chance.bytes(1 + chance.below(8)), bytes.subarray(at)]);
  },
  (bytes, chance) => {
    const at = chance.below(bytes.length + 1);
    const end = Math.min(bytes.length, at + 1 + chance.below(16));
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)]);
  },
  (bytes, chance) => {
    const at = chance.below(bytes.length + 1);
    const part = bytes.subarray(at, at + 1 + chance.below(64));
    return Buffer.concat([bytes.subarray(0, at), part, part, part, bytes.subarray(at)]);
  },
];

/** One in eight is noise, one in eight the seed as it is; everything else has one to four changes. */
export function hostile(seeds: readonly Buffer[], chance: Chance): Buffer {
  const kind = chance.below(8);
  if (kind === 0) return chance.bytes(chance.below(120));
  let bytes: Buffer = Buffer.from(chance.of(seeds));
  if (kind === 1) return bytes;
  for (let count = 1 + chance.below(4); count > 0; count--) bytes = chance.of(CHANGES)(bytes, chance, seeds);
  return bytes.length > MAX_BYTES ? bytes.subarray(0, MAX_BYTES) : bytes;
}

/** As it may arrive: at once, in a few pieces, or byte by byte. */
export function pieces(bytes: Buffer, chance: Chance): readonly Buffer[] {
  const kind = chance.below(8);
  if (kind < 4 || bytes.length < 2) return [bytes];
  if (kind === 7 && bytes.length <= 512) return Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
  const cuts = Array.from({ length: 1 + chance.below(4) }, () => chance.below(bytes.length + 1));
  const edges = [0, ...cuts.sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
}
