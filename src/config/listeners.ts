/** `listeners`, and the listeners that the top-level ports stand for. */
import { Fault, maybe, name, parseRanges, scalar, text, type Range } from "#core/fields.ts";
import { suggestion } from "#core/nearest.ts";
import type { Protocol } from "#core/protocol.ts";
import { ip } from "#net/address-fields.ts";
import { ANY_V4 } from "#net/ip.ts";
import { z } from "zod";
import type { GeneralKeys, ListenerConfig } from "./config.ts";
import { parseSafely, type Context, type Registries } from "./context.ts";
import { isItemMap, joined, peek, readBoth } from "./items.ts";
import { LISTENER_TYPES } from "./known-types.ts";
import type { Path } from "./report.ts";
import { bindHosts, mark, PORT_LISTENERS } from "./sections/general.ts";

/** One listener opens every port of its ranges; more than this is a mistake. */
const MOST_PORTS = 1024;

const ports = () =>
  scalar({ type: ["string", "integer"] }, (source): readonly number[] | Fault => {
    if (source.trim() === "") return [0];
    const ranges = source.trim() === "*" ? new Fault("expected ports") : parseRanges(source, 0, 65_535);
    return ranges instanceof Fault ? ranges : expand(ranges);
  });

function expand(ranges: readonly Range[]): readonly number[] | Fault {
  const all = new Set<number>();
  for (const { from, to } of ranges) {
    if (to - from >= MOST_PORTS) return new Fault(`expected at most ${MOST_PORTS} ports`);
    for (let at = from; at <= to; at++) all.add(at);
  }
  return all.size > MOST_PORTS ? new Fault(`expected at most ${MOST_PORTS} ports`) : [...all];
}

export const listenerFields = z.object({
  name: name(),
  type: name(),
  listen: ip().default(ANY_V4),
  port: ports().default([0]),
  rule: maybe(text()),
  proxy: maybe(text()),
  "routing-mark": mark().default(0),
});

export interface Listeners {
  readonly listeners: readonly ListenerConfig[];
  /** Type by name of every item that has both, also of those that this build cannot open. */
  readonly types: ReadonlyMap<string, string>;
}

export function readListeners(context: Context, items: readonly unknown[]): Listeners {
  const { report } = context;
  const listeners: ListenerConfig[] = [];
  const types = new Map<string, string>();
  for (const [at, item] of items.entries()) {
    const path: Path = ["listeners", at];
    const prefix = `listener ${at}`;
    if (!isItemMap(context, item, path, prefix)) continue;
    const listenerName = peek(item, "name", "hyphen");
    const type = peek(item, "type", "hyphen");
    if (listenerName !== null) {
      const reserved = PORT_LISTENERS.some((entry) => entry.name === listenerName);
      if (reserved)
        report.error(
          [...path, "name"],
          `${prefix}: the name ${listenerName} belongs to a top-level port; choose another`,
        );
      else if (types.has(listenerName))
        report.error([...path, "name"], `listener ${listenerName} is the duplicate name`);
      types.set(listenerName, type ?? "");
    }
    const listener = readListener(context, item, type, path, prefix);
    if (listener !== null) listeners.push(listener);
  }
  return { listeners, types };
}

function readListener(
  context: Context,
  item: Readonly<Record<string, unknown>>,
  type: string | null,
  path: Path,
  prefix: string,
): ListenerConfig | null {
  const protocol = type === null ? null : inboundOf(context.registries, type);
  const own = protocol?.inbound?.schema ?? z.object({});
  const shape = protocol === null ? z.looseObject(listenerFields.shape) : joined(listenerFields, own);
  const prepared = context.prepare(shape, item, path, "hyphen", prefix);
  if (type !== null && protocol === null && !admitsUnknown(context, type, path, prefix)) return null;
  const read = readBoth(context, listenerFields, own, prepared, path, prefix);
  if (read === null || protocol === null) return null;
  const { common, options } = read;
  return {
    name: common.name,
    protocol,
    hosts: [common.listen],
    ports: common.port,
    ruleList: common.rule === "" ? null : common.rule,
    target: common.proxy === "" ? null : common.proxy,
    routingMark: common["routing-mark"],
    options,
  };
}

function admitsUnknown({ report, registries }: Context, type: string, path: Path, prefix: string): boolean {
  const at = [...path, "type"];
  if (LISTENER_TYPES.includes(type)) {
    report.warning(at, `${prefix}: type ${type} is not in this build; the listener is left out`);
    return true;
  }
  const known = registries.protocols
    .filter(({ inbound }) => inbound !== undefined)
    .map((entry) => entry.type);
  const names = new Set([...known, ...LISTENER_TYPES]);
  report.error(at, `${prefix}: unsupport listener type: ${type}${suggestion(type, names)}`);
  return false;
}

function inboundOf({ protocols }: Registries, type: string): Protocol | null {
  return protocols.find((protocol) => protocol.type === type && protocol.inbound !== undefined) ?? null;
}

/** The listeners of `port`, `mixed-port` and the like. `missing` hears of a port that this build cannot open. */
export function portListeners(
  general: GeneralKeys,
  registries: Registries,
  missing: (key: string, message: string) => void,
): readonly ListenerConfig[] {
  const hosts = bindHosts(general.allowLan, general.bindAddress);
  const listeners: ListenerConfig[] = [];
  for (const { key, member, type, name: listenerName } of PORT_LISTENERS) {
    if (general[member] === 0) continue;
    const protocol = inboundOf(registries, type);
    const options = protocol?.inbound === undefined ? null : parseSafely(protocol.inbound.schema, {});
    if (protocol === null || options === null || options.issues !== null) {
      missing(key, `${key}: the protocol ${type} is not in this build; the port is left closed`);
      continue;
    }
    listeners.push({
      name: listenerName,
      protocol,
      hosts,
      ports: [general[member]],
      ruleList: null,
      target: null,
      routingMark: 0,
      options: options.data as object,
    });
  }
  return listeners;
}
