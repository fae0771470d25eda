/** `listeners`, and the listeners of the top-level ports. */
import { suggestion } from "#lib/nearest-word.ts";
import type { Protocol } from "#core/protocol.ts";
import * as z from "zod";
import type { GeneralKeys, ListenerConfig } from "./config.ts";
import { withAcmeFile, type AcmeScope } from "./acme-keys.ts";
import { parseSafely, type Context, type Registries } from "./context.ts";
import { warnOfListenerNames, warnOfNamedOutbounds, type NameScope } from "./cross-checks.ts";
import { isItemMap, issueText, joined, peek, readBoth } from "./items.ts";
import { FOREIGN_LISTENER_TYPES } from "./known-types.ts";
import { listenerFields } from "./listener-fields.ts";
import type { Path } from "./report.ts";
import { bindHosts, PORT_LISTENERS } from "./sections/general.ts";
import { TUN_NAME } from "./sections/tun.ts";
import { readTunListener, type TunListenerConfig } from "./tun-listeners.ts";

export interface Listeners {
  readonly listeners: readonly ListenerConfig[];
  readonly tunListeners: readonly TunListenerConfig[];
  /** Type by name of every item that has both, also of those that this build cannot open. */
  readonly types: ReadonlyMap<string, string>;
}

/** `acme`: who asks for a certificate there gets it by these settings. */
export interface ListenerScope extends NameScope {
  readonly acme: AcmeScope;
}

export function readListeners(context: Context, items: readonly unknown[], scope: ListenerScope): Listeners {
  const { report } = context;
  const listeners: ListenerConfig[] = [];
  const tunListeners: TunListenerConfig[] = [];
  const types = new Map<string, string>();
  const lastOf = new Map(items.map((item, at) => [peek(item, "name", "hyphen"), at]));
  for (const [at, item] of items.entries()) {
    const path: Path = ["listeners", at];
    const prefix = `listener ${at}`;
    if (!isItemMap(context, item, path, prefix)) continue;
    const listenerName = peek(item, "name", "hyphen") ?? "";
    const type = peek(item, "type", "hyphen");
    const fault = nameFault(listenerName, lastOf.get(listenerName) !== at);
    if (fault !== null) {
      report.warning([...path, "name"], `${prefix}: ${fault}; the listener is left out`);
      continue;
    }
    types.set(listenerName, type ?? "");
    if (type === "tun") {
      const tun = readTunListener(context, item, at, path, prefix);
      if (tun === null) continue;
      tunListeners.push(tun);
      warnOfListenerNames(context, tun, scope, path, prefix);
      continue;
    }
    const listener = readListener(context, item, type, { path, prefix, acme: scope.acme });
    if (listener === null) continue;
    listeners.push(listener);
    warnOfListenerNames(context, listener, scope, path, prefix);
    warnOfNamedOutbounds(context, listener, scope, path, prefix);
  }
  return { listeners, tunListeners, types };
}

/** Why no listener can have this name; null: it can. Of several with one name the last one is kept, as elsewhere. */
function nameFault(name: string, comesAgain: boolean): string | null {
  if (name === "") return "'name' is missing";
  if (name === TUN_NAME || PORT_LISTENERS.some((entry) => entry.name === name))
    return `the name ${name} belongs to a top-level key; choose another`;
  return comesAgain ? `the name ${name} comes again further down` : null;
}

function readListener(
  context: Context,
  item: Readonly<Record<string, unknown>>,
  type: string | null,
  { path, prefix, acme }: { readonly path: Path; readonly prefix: string; readonly acme: AcmeScope },
): ListenerConfig | null {
  const protocol = type === null ? null : inboundOf(context.registries, type);
  const own = protocol?.inbound?.schema ?? z.object({});
  const shape = protocol === null ? z.looseObject(listenerFields.shape) : joined(listenerFields, own);
  const prepared = context.prepare(shape, item, path, "hyphen", prefix);
  if (type !== null && protocol === null && !admitsUnknown(context, type, path, prefix)) return null;
  const asking = { path, prefix: `${prefix}: ` };
  const whole = "acme" in own.shape ? withAcmeFile(context, prepared, acme, asking) : prepared;
  const read = readBoth(context, listenerFields, own, whole, path, prefix);
  if (read === null || protocol === null) return null;
  const { common, options } = read;
  const [lack] = read.unsupported;
  if (lack !== undefined) {
    const why = `${prefix}: ${common.name}: ${issueText(lack)}; the listener is left out`;
    context.report.warning([...path, ...lack.path], why);
    return null;
  }
  if (common.port.length === 0) {
    const why = `${prefix}: ${common.name}: 'port' expected a port from 0 to 65535; the listener is left out`;
    context.report.warning([...path, "port"], why);
    return null;
  }
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
  if (FOREIGN_LISTENER_TYPES.includes(type)) {
    report.warning(at, `${prefix}: type ${type} is not in this build; the listener is left out`);
    return true;
  }
  const known = registries.protocols
    .filter(({ inbound }) => inbound !== undefined)
    .map((entry) => entry.type);
  const names = new Set([...known, ...FOREIGN_LISTENER_TYPES]);
  report.error(at, `${prefix}: unsupport listener type: ${type}${suggestion(type, names)}`);
  return false;
}

function inboundOf({ protocols }: Registries, type: string): Protocol | null {
  return protocols.find((protocol) => protocol.type === type && protocol.inbound !== undefined) ?? null;
}

/** The listeners of `port`, `mixed-port` and the like. `missing` is called for a port that this build cannot open. */
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
