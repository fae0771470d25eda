/** Padding schemes: how a client cuts and fills the first writes of a session, so that their sizes give nothing away. */
import { createHash } from "node:crypto";
import { ConfigError } from "#core/errors.ts";
import type { ShapeItem, WriteShapes } from "#core/wire-details.ts";
import { type Draw, drawSize } from "#protocols/shared/padded-write.ts";
import { MAX_DATA } from "./wire.ts";

export interface PaddingScheme extends WriteShapes {
  /** The text exactly as it came: what the hash covers. */
  readonly raw: Buffer;
  /** MD5 of `raw`, lower-case hex. */
  readonly md5: string;
}

const DEFAULT_TEXT = `stop=8
0=30-30
1=100-400
2=400-500,c,500-1000,c,500-1000,c,500-1000,c,500-1000
3=9-9,500-1000
4=500-1000
5=500-1000
6=500-1000
7=500-1000`;

/** A scheme comes from the network: more lines, or more items in a line, are refused. */
const MAX_LINES = 256;
const MAX_ITEMS = 256;

/** Throws `ConfigError` with what is wrong. */
export function parseScheme(raw: Buffer): PaddingScheme {
  let stop: number | null = null;
  const lines = new Map<number, readonly ShapeItem[]>();
  for (const line of raw.toString().split("\n")) {
    const at = line.indexOf("=");
    const key = line.slice(0, Math.max(at, 0)).trim();
    const value = line.slice(at + 1).trim();
    if (key === "stop") stop = readNumber(value, "stop");
    else if (/^[0-9]+$/.test(key)) lines.set(readNumber(key, "a line's number"), parseItems(value));
    else if (line.trim() !== "")
      throw new ConfigError(`padding scheme: ${key || line} is neither stop nor a number`);
    if (lines.size > MAX_LINES) throw new ConfigError(`padding scheme: more than ${MAX_LINES} lines`);
  }
  if (stop === null) throw new ConfigError("padding scheme: stop is missing");
  return { raw, md5: createHash("md5").update(raw).digest("hex"), stop, lines };
}

function readNumber(text: string, what: string): number {
  const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : null;
  if (value === null)
    throw new ConfigError(`padding scheme: ${what} is ${text.slice(0, 20)}, expected a number`);
  return value;
}

function parseItems(list: string): readonly ShapeItem[] {
  const texts = list.split(",");
  if (texts.length > MAX_ITEMS)
    throw new ConfigError(`padding scheme: more than ${MAX_ITEMS} items in a line`);
  return texts.map(parseItem).filter((item) => item !== null);
}

/** Null for a range that holds no size: it is passed over. */
function parseItem(source: string): ShapeItem | null {
  const item = source.trim();
  if (item === "c") return "check";
  const range = /^([0-9]{1,9})-([0-9]{1,9})$/.exec(item);
  if (range === null) throw new ConfigError(`padding scheme: ${item.slice(0, 20)}, expected a range or c`);
  const [low, high] = [Number(range[1]), Number(range[2])].sort((a, b) => a - b) as [number, number];
  if (high > MAX_DATA) throw new ConfigError(`padding scheme: ${item}, sizes end at ${MAX_DATA}`);
  return low <= 0 ? null : { from: low, to: high };
}

export const DEFAULT_SCHEME = parseScheme(Buffer.from(DEFAULT_TEXT));

/** How much padding the preamble carries: the first size of line 0. */
export function preamblePadding({ stop, lines }: WriteShapes, draw: Draw = drawSize): number {
  const item = stop > 0 ? lines.get(0)?.find((one) => one !== "check") : undefined;
  return item === undefined ? 0 : draw(item.from, item.to);
}
