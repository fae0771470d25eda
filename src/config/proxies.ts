/** `proxies`, and the nodes that providers bring. */
import { show } from "#core/fields.ts";
import { suggestion } from "#core/nearest.ts";
import type { Protocol } from "#core/protocol.ts";
import { parseIp } from "#net/ip.ts";
import { z } from "zod";
import type { IpVersion, ProxyConfig } from "./config.ts";
import type { Context } from "./context.ts";
import { findCircles } from "./circles.ts";
import { isItemMap, joined, peek, readBoth } from "./items.ts";
import { PROXY_TYPES } from "./known-types.ts";
import { IP_VERSIONS, proxyFields } from "./proxy-fields.ts";
import type { Path } from "./report.ts";

const NO_FIELDS = z.object({});

export interface ProxyNodes {
  readonly proxies: readonly { readonly proxy: ProxyConfig; readonly index: number }[];
  /** Of every node that has a name, also of those that could not be read. */
  readonly names: ReadonlySet<string>;
}

/** Reads nodes one by one, remembering what it knows of each protocol. */
export class ProxyReader {
  readonly #context: Context;
  readonly #protocols: ReadonlyMap<string, Protocol>;
  readonly #shapes = new Map<string, z.ZodObject>();
  readonly #knownTypes: ReadonlySet<string>;
  /** Keys without effect that were warned of. */
  readonly #inert = new Set<string>();

  constructor(context: Context) {
    this.#context = context;
    const outbound = context.registries.protocols.filter((protocol) => protocol.outbound !== undefined);
    this.#protocols = new Map(outbound.map((protocol) => [protocol.type, protocol]));
    this.#knownTypes = new Set([...this.#protocols.keys(), ...PROXY_TYPES]);
  }

  /** All nodes of a list. `prefix` is what stands before `3:` in messages. */
  readAll(items: readonly unknown[], path: Path, prefix: string, taken: ReadonlySet<string>): ProxyNodes {
    const proxies: { proxy: ProxyConfig; index: number }[] = [];
    const names = new Set<string>();
    for (const [at, item] of items.entries()) {
      const name = peek(item, "name", "hyphen");
      const proxy = this.#read(item, [...path, at], `${prefix} ${at}`);
      if (name !== null && (names.has(name) || taken.has(name)))
        this.#context.report.error([...path, at, "name"], `proxy ${name} is the duplicate name`);
      else if (proxy !== null) proxies.push({ proxy, index: at });
      if (name !== null) names.add(name);
    }
    return { proxies, names };
  }

  #read(item: unknown, path: Path, prefix: string): ProxyConfig | null {
    const { report } = this.#context;
    if (!isItemMap(this.#context, item, path, prefix)) return null;
    const type = peek(item, "type", "hyphen");
    const protocol = type === null ? null : (this.#protocols.get(type) ?? null);
    if (type !== null && protocol === null && !this.#admitsUnknown(type, path, prefix, item)) return null;
    const own = protocol?.outbound?.schema ?? NO_FIELDS;
    const prepared = this.#context.prepare(this.#shapeOf(type, protocol), item, path, "hyphen", prefix);
    const read = readBoth(this.#context, proxyFields, own, prepared, path, prefix);
    if (read === null) return null;
    const { common, options } = read;
    const ipVersion = IP_VERSIONS.find((word) => word === common["ip-version"].toLowerCase());
    if (ipVersion === undefined)
      report.warning(
        [...path, "ip-version"],
        `${prefix}: 'ip-version' ${common["ip-version"]} is unknown and means dual${suggestion(common["ip-version"], IP_VERSIONS)}`,
      );
    const { server } = options as { readonly server?: unknown };
    if (typeof server === "string" && !isHost(server))
      report.warning(
        [...path, "server"],
        `${prefix}: 'server' expected a name or an address, without scheme, port or blanks, got ${show(server)}; it cannot be dialled`,
      );
    for (const key of ["tfo", "mptcp"] as const) if (common[key]) this.#warnOfInert(key, path, prefix);
    return {
      name: common.name,
      type: common.type,
      protocol,
      udp: common.udp,
      interfaceName: common["interface-name"],
      routingMark: common["routing-mark"],
      ipVersion: ipVersion ?? ("dual" satisfies IpVersion),
      dialerProxy: common["dialer-proxy"] === "" ? null : common["dialer-proxy"],
      options,
    };
  }

  /** Once: subscriptions have it on every node. */
  #warnOfInert(key: "tfo" | "mptcp", path: Path, prefix: string): void {
    if (this.#inert.has(key)) return;
    this.#inert.add(key);
    this.#context.report.warning(
      [...path, key],
      `${prefix}: '${key}' has no effect, here and on others`,
      "key",
    );
  }

  /** A word of the ecosystem that this build does not speak costs one node, not the file. */
  #admitsUnknown(type: string, path: Path, prefix: string, item: unknown): boolean {
    const { report } = this.#context;
    const at = [...path, "type"];
    if (PROXY_TYPES.includes(type)) {
      const name = peek(item, "name", "hyphen") ?? "";
      report.warning(
        at,
        `${prefix}: ${name}: type ${type} is not in this build; the node stays and cannot be dialled`,
      );
      return true;
    }
    report.error(at, `${prefix}: unsupport proxy type: ${type}${report.suggest(type, this.#knownTypes)}`);
    return false;
  }

  #shapeOf(type: string | null, protocol: Protocol | null): z.ZodObject {
    const key = type ?? "";
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      const schema = protocol?.outbound?.schema;
      // Without its protocol nobody knows what keys a node may have: none is called unknown then.
      shape = schema === undefined ? z.looseObject(proxyFields.shape) : joined(proxyFields, schema);
      this.#shapes.set(key, shape);
    }
    return shape;
  }
}

function isHost(text: string): boolean {
  return parseIp(text) !== null || !/[\s:/@[\]]/.test(text);
}

/** `dialer-proxy` must name something, and following it must come to an end. Groups count with all their members. */
export function checkDialerProxies(
  context: Context,
  proxies: readonly { readonly proxy: ProxyConfig; readonly path: Path }[],
  membersOf: ReadonlyMap<string, readonly string[]>,
  known: ReadonlySet<string>,
): void {
  const { report } = context;
  const dialer = new Map<string, string>();
  for (const { proxy, path } of proxies) {
    if (proxy.dialerProxy === null) continue;
    if (known.has(proxy.dialerProxy)) dialer.set(proxy.name, proxy.dialerProxy);
    else
      report.error(
        [...path, "dialer-proxy"],
        `proxy ${proxy.name}: dialer-proxy ${proxy.dialerProxy} not found${report.suggest(proxy.dialerProxy, known)}`,
      );
  }
  const next = (name: string): readonly string[] => {
    const through = dialer.get(name);
    return through === undefined ? (membersOf.get(name) ?? []) : [through];
  };
  const paths = new Map(proxies.map(({ proxy, path }) => [proxy.name, path]));
  for (const circle of findCircles(dialer.keys(), next)) {
    const name = circle.find((part) => paths.has(part));
    if (name === undefined) continue; // groups alone: their own check says so
    const text = [...circle, circle[0]].join(" -> ");
    report.error(
      [...(paths.get(name) as Path), "dialer-proxy"],
      `proxy ${name}: circular dialer-proxy: ${text}`,
    );
  }
}
