/** Rules that choose a routing table (ip-rule(8), linux/fib_rules.h). */
import { AF_INET, AF_INET6 } from "#platform/linux/sockaddr.ts";
import { SystemError } from "#platform/linux/libc.ts";
import {
  attribute,
  attribute32,
  attribute8,
  attributesBehind,
  attributeText,
  LITTLE_ENDIAN,
  NLM_F_CREATE,
  NLM_F_EXCL,
  textOf,
  uint32Of,
  type NetlinkMessage,
} from "./message.ts";
import type { NetlinkSocket } from "./socket.ts";
import { byteAt } from "#lib/at.ts";

export const RTM_NEWRULE = 32;
const RTM_DELRULE = 33;
const RTM_GETRULE = 34;
const HEADER_BYTES = 12;
const FRA_DST = 1;
const FRA_SRC = 2;
const FRA_IIFNAME = 3;
const FRA_GOTO = 4;
const FRA_PRIORITY = 6;
const FRA_FWMARK = 10;
const FRA_SUPPRESS_PREFIXLEN = 14;
const FRA_TABLE = 15;
const FRA_UID_RANGE = 20;
const FRA_PROTOCOL = 21;
const FRA_DPORT_RANGE = 24;
const FIB_RULE_INVERT = 2;
/**
 * The protocol number in our rules (Linux 4.17), which rt_protos assigns to no other program; ours are found again by
 * it.
 */
export const OUR_PROTOCOL = 119;
export const RULE_ACTIONS = { table: 1, goto: 2, nop: 3, unreachable: 7 } as const;

export interface RuleAction {
  /** Look into a table, `suppress` passing over routes that are no longer than so many bits; */
  readonly table?: number;
  readonly suppress?: number;
  /** continue at a priority; */
  readonly goto?: number;
  /** continue with the next rule, or end with an error. */
  readonly end?: "nop" | "unreachable";
}

interface PrefixBytes {
  readonly bytes: Uint8Array;
  readonly bits: number;
}

export interface IpRule extends RuleAction {
  readonly family: 4 | 6;
  /** Lower ones are asked first; several may have the same and are asked as they were added. */
  readonly priority: number;
  /** Every condition must hold; with `not` they must not hold all. */
  readonly not?: boolean;
  /** The whole mark. */
  readonly mark?: number;
  readonly from?: PrefixBytes;
  readonly to?: PrefixBytes;
  /** Name of the device that the packet came in by; `lo`: made here. */
  readonly inDevice?: string;
  readonly uid?: { readonly from: number; readonly to: number };
  readonly destinationPort?: number;
}

/** What a list of rules shows. */
export interface ShownRule {
  readonly family: 4 | 6;
  readonly priority: number;
  readonly action: number;
  readonly table: number;
  readonly mark: number | null;
  readonly inDevice: string;
  /** Length of the destination's prefix; 0: any. */
  readonly toBits: number;
  /** 0: not given. */
  readonly protocol: number;
}

// fib_rule_hdr: FAMILY(1) DST_LEN(1) SRC_LEN(1) TOS(1) TABLE(1) RES1(1) RES2(1) ACTION(1) FLAGS(4)
export function encodeRule(rule: IpRule): Uint8Array {
  const head = new Uint8Array(HEADER_BYTES);
  const parts: Uint8Array[] = [head, attribute32(FRA_PRIORITY, rule.priority)];
  parts.push(attribute8(FRA_PROTOCOL, OUR_PROTOCOL));
  head[0] = rule.family === 4 ? AF_INET : AF_INET6;
  head[1] = rule.to?.bits ?? 0;
  head[2] = rule.from?.bits ?? 0;
  if (rule.not === true) new DataView(head.buffer).setUint32(8, FIB_RULE_INVERT, LITTLE_ENDIAN);
  if (rule.to !== undefined && rule.to.bits > 0) parts.push(attribute(FRA_DST, rule.to.bytes));
  if (rule.from !== undefined && rule.from.bits > 0) parts.push(attribute(FRA_SRC, rule.from.bytes));
  if (rule.mark !== undefined) parts.push(attribute32(FRA_FWMARK, rule.mark)); // without a mask: all bits
  if (rule.inDevice !== undefined) parts.push(attributeText(FRA_IIFNAME, rule.inDevice));
  if (rule.uid !== undefined)
    parts.push(attribute(FRA_UID_RANGE, new Uint8Array(Uint32Array.of(rule.uid.from, rule.uid.to).buffer)));
  const port = rule.destinationPort;
  if (port !== undefined)
    parts.push(attribute(FRA_DPORT_RANGE, new Uint8Array(Uint16Array.of(port, port).buffer)));
  parts.push(...encodeAction(head, rule));
  return Buffer.concat(parts);
}

function encodeAction(head: Uint8Array, { table, suppress, goto, end }: RuleAction): readonly Uint8Array[] {
  head[7] =
    end !== undefined ? RULE_ACTIONS[end] : goto !== undefined ? RULE_ACTIONS.goto : RULE_ACTIONS.table;
  if (goto !== undefined) return [attribute32(FRA_GOTO, goto)];
  if (table === undefined) return [];
  head[4] = table < 256 ? table : 0;
  const parts = [attribute32(FRA_TABLE, table)];
  if (suppress !== undefined) parts.push(attribute32(FRA_SUPPRESS_PREFIXLEN, suppress));
  return parts;
}

/** Throws `SystemError`: EEXIST where the same rule is there already. */
export function addRule(socket: NetlinkSocket, rule: IpRule): void {
  const what = `add an ip rule of priority ${rule.priority}`;
  socket.request(what, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, encodeRule(rule));
}

export function listRules(socket: NetlinkSocket, family: 4 | 6): readonly ShownRule[] {
  const rules: ShownRule[] = [];
  const header = new Uint8Array(HEADER_BYTES);
  header[0] = family === 4 ? AF_INET : AF_INET6;
  socket.dump("list ip rules", RTM_GETRULE, header, (message) => {
    const rule = message.type === RTM_NEWRULE ? decodeRule(message) : null;
    if (rule !== null) rules.push(rule);
  });
  return rules;
}

/** All rules of this priority, or those of one protocol; answers with how many there were. */
export function deleteRules(
  socket: NetlinkSocket,
  family: 4 | 6,
  priority: number,
  protocol: number | null = null,
): number {
  const head = new Uint8Array(HEADER_BYTES);
  head[0] = family === 4 ? AF_INET : AF_INET6;
  const maker = protocol === null ? [] : [attribute8(FRA_PROTOCOL, protocol)];
  const payload = Buffer.concat([head, attribute32(FRA_PRIORITY, priority), ...maker]);
  for (let count = 0; ; count++) {
    try {
      socket.request(`delete an ip rule of priority ${priority}`, RTM_DELRULE, 0, payload);
    } catch (error) {
      if (error instanceof SystemError && error.code === "ENOENT") return count;
      throw error;
    }
  }
}

/** Null: of another family. Throws `ProtocolError`. */
export function decodeRule({ payload }: NetlinkMessage): ShownRule | null {
  const attributes = attributesBehind(payload, HEADER_BYTES, "an ip rule");
  const family = payload[0] === AF_INET ? 4 : payload[0] === AF_INET6 ? 6 : null;
  if (family === null) return null;
  return {
    family,
    priority: uint32Of(attributes.get(FRA_PRIORITY)) ?? 0,
    action: byteAt(payload, 7),
    table: uint32Of(attributes.get(FRA_TABLE)) ?? byteAt(payload, 4),
    mark: uint32Of(attributes.get(FRA_FWMARK)),
    inDevice: textOf(attributes.get(FRA_IIFNAME)),
    toBits: byteAt(payload, 1),
    protocol: attributes.get(FRA_PROTOCOL)?.[0] ?? 0,
  };
}
