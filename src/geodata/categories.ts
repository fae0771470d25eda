/** One category of GeoSite.dat or GeoIP.dat as something that matches. */
import { ProtocolError } from "#core/errors.ts";
import type { Matcher, RuleData } from "#core/rule.ts";
import type { Cidr } from "#net/address/cidr.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import { normalizeDomain } from "#lib/domain-pattern.ts";
import { DomainTable, EXACT, SUFFIX } from "#lib/domain-table.ts";
import type { Steps } from "#lib/steps.ts";
import { hostPattern } from "#router/tables/host-pattern.ts";
import { anyOf } from "#router/tables/joined.ts";
import { openCondition } from "#router/tables/open-condition.ts";
import { Fields, LENGTH, VARINT } from "./protobuf.ts";

/** A pattern that is tried against a lower-case name. Throws where the source is none. */
export type CompilePattern = (source: string) => { test(host: string): boolean };

// Domain: type(1): 0 keyword, 1 expression, 2 name and below, 3 exact name; value(2); repeated attribute(3): key(1) ….
const KEYWORD = 0;
const EXPRESSION = 1;
const SUBDOMAIN = 2;

/**
 * The names of a category that have all of `attributes`; `!name` wants that an attribute is not there. Expressions that
 * cannot be compiled are left out. Throws `ProtocolError`.
 */
export function* sitesInSteps(
  messages: readonly Buffer[],
  attributes: readonly string[],
  compile: CompilePattern,
): Steps<RuleData> {
  const names: string[] = [];
  const covers: number[] = [];
  const parts: Matcher[] = [];
  for (const message of messages)
    for (const fields = new Fields(message); fields.next();) {
      yield;
      if (fields.field !== 2 || fields.wire !== LENGTH) continue;
      const { kind, value, has } = readDomain(fields.inner());
      if (
        !attributes.every((wanted) => (wanted.startsWith("!") ? !has.has(wanted.slice(1)) : has.has(wanted)))
      )
        continue;
      if (kind === KEYWORD)
        parts.push(openCondition({ is: "host", test: "contains", text: value.toLowerCase() }));
      else if (kind === EXPRESSION) parts.push(...compiled(value, compile));
      else {
        const name = normalizeDomain(value);
        if (name === null) continue;
        names.push(name);
        covers.push(kind === SUBDOMAIN ? SUFFIX : EXACT);
      }
    }
  const { parts: table } = yield* DomainTable.build(names, Uint8Array.from(covers));
  const all = [openCondition({ is: "names", table }), ...parts];
  return Object.assign(anyOf(all, ["host"]), { size: names.length + parts.length });
}

function compiled(source: string, compile: CompilePattern): readonly Matcher[] {
  try {
    return [hostPattern(compile(source))];
  } catch {
    return []; // lists of thousands hold one or two that only some engines can run
  }
}

function readDomain(fields: Fields): { kind: number; value: string; has: ReadonlySet<string> } {
  let kind = KEYWORD;
  let value = "";
  let has: Set<string> | null = null;
  while (fields.next()) {
    if (fields.field === 1 && fields.wire === VARINT) kind = fields.number;
    else if (fields.field === 2 && fields.wire === LENGTH) value = fields.text();
    else if (fields.field === 3 && fields.wire === LENGTH) {
      const attribute = fields.inner();
      has ??= new Set();
      while (attribute.next())
        if (attribute.field === 1 && attribute.wire === LENGTH) has.add(attribute.text().toLowerCase());
    }
  }
  return { kind, value, has: has ?? NO_ATTRIBUTES };
}

const NO_ATTRIBUTES: ReadonlySet<string> = new Set();

/** The networks of a category; `reverse_match`(3) turns the answer around. Throws `ProtocolError`. */
export function* networksInSteps(messages: readonly Buffer[]): Steps<RuleData> {
  const cidrs: Cidr[] = [];
  let reverse = false;
  for (const message of messages)
    for (const fields = new Fields(message); fields.next();) {
      yield;
      if (fields.field === 2 && fields.wire === LENGTH) cidrs.push(readNetwork(fields.inner()));
      else if (fields.field === 3 && fields.wire === VARINT) reverse = fields.number !== 0;
    }
  const { parts: table } = yield* CidrTable.build(cidrs);
  const matcher = openCondition({ is: "networks", side: "ip", table, reversed: reverse });
  return { ...matcher, size: cidrs.length };
}

// Network: address(1) of 4 or 16 bytes, prefix length(2).
function readNetwork(fields: Fields): Cidr {
  let bytes: Uint8Array = new Uint8Array();
  let bits = 0;
  while (fields.next())
    if (fields.field === 1 && fields.wire === LENGTH) bytes = Uint8Array.from(fields.bytes());
    else if (fields.field === 2 && fields.wire === VARINT) bits = fields.number;
  if ((bytes.length !== 4 && bytes.length !== 16) || bits > bytes.length * 8)
    throw new ProtocolError("the file holds a network that is none");
  return { bytes, bits };
}
