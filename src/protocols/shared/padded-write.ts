/** How the first writes of a session are cut and filled, by the event loop or by a worker. */
import { randomInt } from "node:crypto";
import type { ShapeItem, WriteShapes } from "#core/wire-details.ts";
import { encodeWaste, HEADER_BYTES } from "./stream-frame.ts";

export type Draw = (from: number, to: number) => number;

/** From the range [from, to), or `from` where the two are the same. */
export const drawSize: Draw = (from, to) => (from === to ? from : randomInt(from, to));

/** The write with number `index` as the pieces that it goes out in, one TLS record each. */
export function shapeWrite(
  { stop, lines }: WriteShapes,
  index: number,
  payload: Buffer,
  draw: Draw = drawSize,
): readonly Buffer[] {
  const items = index < stop ? lines.get(index) : undefined;
  if (items === undefined) return [payload];
  const pieces: Buffer[] = [];
  let rest = payload;
  for (const item of items) {
    if (item === "check") {
      if (rest.length === 0) break;
      continue;
    }
    const size = draw(item.from, item.to);
    pieces.push(pieceOf(rest, size));
    rest = rest.subarray(Math.min(size, rest.length));
  }
  if (rest.length > 0) pieces.push(rest);
  return pieces;
}

/** A worker that makes a write keeps all of it until the socket takes it. */
const LITTLE_BYTES = 32 * 1024;

/** To each write. */
export function addsLittle({ lines }: WriteShapes): boolean {
  const added = (items: readonly ShapeItem[]): number =>
    items.reduce((sum, item) => sum + (item === "check" ? 0 : item.to + HEADER_BYTES), 0);
  return lines.values().every((items) => added(items) <= LITTLE_BYTES);
}

function pieceOf(rest: Buffer, size: number): Buffer {
  if (rest.length > size) return rest.subarray(0, size);
  if (rest.length === 0) return encodeWaste(size);
  const padding = size - rest.length - HEADER_BYTES;
  return padding > 0 ? Buffer.concat([rest, encodeWaste(padding)]) : rest;
}
