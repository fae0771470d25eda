/** Rule lists from one form into another (`weir convert-ruleset`). */
import { ConfigError } from "#core/errors.ts";
import { cidrText, parseCidr, type Cidr } from "#net/address/cidr.ts";
import { normalizeDomain, parseDomainPattern } from "#lib/domain-pattern.ts";
import { itemsOf, type Behavior, type Format } from "./read.ts";
import { decodeMrs, encodeCidrMrs, encodeDomainMrs } from "./mrs.ts";

export interface Conversion {
  readonly bytes: Uint8Array;
  readonly items: number;
  readonly skipped: number;
}

/** From `format` into MRS; from MRS into text. Throws `ConfigError` or `ProtocolError`. */
export async function convertRuleSet(
  source: Uint8Array,
  behavior: Behavior,
  format: Format,
): Promise<Conversion> {
  if (behavior === "classical") throw new ConfigError("mrs does not hold behavior classical");
  if (format === "mrs") return fromMrs(source, behavior);
  const items = itemsOf(source, format);
  const kept =
    behavior === "domain" ? items.flatMap(canonical) : items.flatMap((item) => parseCidr(item) ?? []);
  if (kept.length === 0) throw new ConfigError(`the source has no item of behavior ${behavior}`);
  const bytes =
    behavior === "domain" ? await encodeDomainMrs(kept as string[]) : await encodeCidrMrs(kept as Cidr[]);
  return { bytes, items: kept.length, skipped: items.length - kept.length };
}

async function fromMrs(source: Uint8Array, behavior: Behavior): Promise<Conversion> {
  const list = await decodeMrs(source);
  if (list.behavior !== behavior) throw new ConfigError(`the source holds behavior ${list.behavior}`);
  const lines = list.behavior === "domain" ? list.items : list.items.map(cidrText);
  return { bytes: Buffer.from(lines.map((line) => `${line}\n`).join("")), items: lines.length, skipped: 0 };
}

/** The pattern in lower-case ASCII; nothing where it is none. */
function canonical(item: string): string[] {
  if (parseDomainPattern(item) === null) return [];
  const lead = item.startsWith("+.") ? "+." : item.startsWith(".") ? "." : "";
  return [lead + (normalizeDomain(item.slice(lead.length)) as string)];
}
