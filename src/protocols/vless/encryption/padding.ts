/** Bytes without meaning behind a handshake, written in pieces with pauses, so that no length or time is fixed. */
import { randomInt } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import type { Duplex } from "node:stream";
import { Fault, show } from "#core/fields.ts";
import { TAG_BYTES } from "#protocols/crypto/aead.ts";
import { type CountedAead, encodeLength, SEALED_LENGTH_BYTES } from "./cipher.ts";

/** With a probability in percent a number between the two, both included; else 0. */
interface Draw {
  readonly percent: number;
  readonly from: number;
  readonly to: number;
}

export interface PaddingPlan {
  /** Bytes of each piece. The first one is always there: it holds the sealed length. */
  readonly lengths: readonly Draw[];
  /** Milliseconds behind each piece. */
  readonly gaps: readonly Draw[];
}

export const DEFAULT_PADDING: PaddingPlan = {
  lengths: [
    { percent: 100, from: 111, to: 1111 },
    { percent: 50, from: 0, to: 3333 },
  ],
  gaps: [{ percent: 75, from: 0, to: 111 }],
};

/** A sealed length, and one byte at least behind it, sealed. */
const SHORTEST = SEALED_LENGTH_BYTES + TAG_BYTES + 1;
const LONGEST = SEALED_LENGTH_BYTES + 0xffff;

const DRAW = /^(\d{1,3})-(\d{1,5})-(\d{1,5})$/;

/** `probability-from-to`, by turns a length and a gap. */
export function readPadding(parts: readonly string[]): PaddingPlan | Fault {
  const draws: Draw[] = [];
  for (const part of parts) {
    const [, percent, from, to] = (DRAW.exec(part) ?? []).map(Number);
    if (percent === undefined || from === undefined || to === undefined || percent > 100 || from > to)
      return new Fault(`padding: expected probability-from-to such as 50-0-3333, got ${show(part)}`);
    draws.push({ percent, from, to });
  }
  const lengths = draws.filter((_, index) => index % 2 === 0);
  const gaps = draws.filter((_, index) => index % 2 === 1);
  const first = lengths[0];
  if (first === undefined || first.percent !== 100 || first.from < SHORTEST)
    return new Fault(`padding: the first length needs a probability of 100 and at least ${SHORTEST} bytes`);
  if (lengths.reduce((sum, { to }) => sum + to, 0) > LONGEST)
    return new Fault(`padding: the lengths add up to more than ${LONGEST} bytes`);
  return { lengths, gaps };
}

function draw({ percent, from, to }: Draw): number {
  return randomInt(100) < percent ? randomInt(from, to + 1) : 0;
}

/** What one handshake does: `sizes` of the pieces, and how long to wait behind each. */
export interface DrawnPadding {
  readonly sizes: readonly number[];
  readonly gapsMs: readonly number[];
  readonly totalBytes: number;
}

export function drawPadding({ lengths, gaps }: PaddingPlan): DrawnPadding {
  const sizes = lengths.map(draw);
  return { sizes, gapsMs: gaps.map(draw), totalBytes: sizes.reduce((sum, size) => sum + size, 0) };
}

/** The sealed length of what follows, and that many sealed zeros. */
export function sealPadding(aead: CountedAead, { totalBytes }: DrawnPadding): Buffer {
  const rest = totalBytes - SEALED_LENGTH_BYTES;
  return Buffer.concat([aead.seal(encodeLength(rest)), aead.seal(Buffer.alloc(rest - TAG_BYTES))]);
}

/** Writes `head` with the first piece, then each piece after its pause. Ends early where the stream is destroyed. */
export async function writePadded(
  stream: Duplex,
  head: Buffer,
  padding: Buffer,
  { sizes, gapsMs }: DrawnPadding,
): Promise<void> {
  let at = 0;
  for (const [index, size] of sizes.entries()) {
    const piece = padding.subarray(at, at + size);
    at += size;
    const bytes = index === 0 ? Buffer.concat([head, piece]) : piece;
    if (bytes.length > 0) stream.write(bytes);
    const gapMs = gapsMs[index] ?? 0;
    if (gapMs > 0 && at < padding.length) await setTimeout(gapMs);
    if (stream.destroyed) return;
  }
}
