/** `proxies`, and the nodes that providers bring. */
import { interfaceNameFault, show } from "#core/fields.ts";
import { suggestion } from "#lib/nearest-word.ts";
import type { Protocol } from "#core/protocol.ts";
import { parseIp } from "#net/address/ip.ts";
import * as z from "zod";
import type { ProxyConfig } from "./config.ts";
import type { Context } from "./context.ts";
import { findCircles } from "./circles.ts";
import { isItemMap, issueText, joined, peek, readBoth } from "./items.ts";
import { FOREIGN_PROXY_TYPES } from "./known-types.ts";
import { nodeNotes } from "./node-notes.ts";
import { IP_VERSIONS, proxyFields } from "./proxy-fields.ts";
import type { Path } from "./report.ts";

const NO_FIELDS = z.object({});

export interface ProxyNodes {
  readonly proxies: readonly { readonly proxy: ProxyConfig; readonly index: number }[];
  /** Of every node that has a name, also of those that could not be read. */
  readonly names: ReadonlySet<string>;
}

/** What is said of every node that stays without being usable. */
const STAYS = "the node stays and cannot be dialled";

/** Reads nodes one by one, remembering what it knows of each protocol. */
export class ProxyReader {
  readonly #context: Context;
  readonly #protocols: ReadonlyMap<string, Protocol>;
  readonly #shapes = new Map<string, z.ZodObject>();
  readonly #knownTypes: ReadonlySet<string>;
  /** Any fault costs only its node: what a provider brings is not the user's to correct. */
  readonly #tolerant: boolean;
  /** Keys without effect that were warned of. */
  readonly #idleKeys = new Set<string>();

  constructor(context: Context, { tolerant = false } = {}) {
    this.#context = context;
    this.#tolerant = tolerant;
    const outbound = context.registries.protocols.filter((protocol) => protocol.outbound !== undefined);
    this.#protocols = new Map(outbound.map((protocol) => [protocol.type, protocol]));
    this.#knownTypes = new Set([...this.#protocols.keys(), ...FOREIGN_PROXY_TYPES]);
  }

  /** Whether the key means something to nodes of the type. */
  knows(type: string, key: string): boolean {
    const protocol = this.#protocols.get(type) ?? null;
    return protocol === null || key in this.#shapeOf(type, protocol).shape;
  }

  /** All nodes of a list. `prefix` precedes `3:` in messages. */
  readAll(items: readonly unknown[], path: Path, prefix: string, taken: ReadonlySet<string>): ProxyNodes {
    const proxies: { proxy: ProxyConfig; index: number }[] = [];
    const names = new Set<string>();
    let index = 0;
    for (const proxy of this.readEach(items, path, prefix, taken, names)) {
      if (proxy !== null) proxies.push({ proxy, index });
      index++;
    }
    return { proxies, names };
  }

  /** The same one by one, in the order of `items`; null: cannot be used at all. Adds to `names` what it finds. */
  *readEach(
    items: readonly unknown[],
    path: Path,
    prefix: string,
    taken: ReadonlySet<string>,
    names: Set<string>,
  ): Generator<ProxyConfig | null> {
    for (const [at, item] of items.entries()) {
      const name = peek(item, "name", "hyphen");
      const here = [...path, at];
      const proxy = this.#tolerant
        ? this.#tryRead(item, here, `${prefix} ${at}`)
        : this.#read(item, here, `${prefix} ${at}`);
      const isTwice = name !== null && (names.has(name) || taken.has(name));
      if (isTwice) this.#reportTwice(name, [...here, "name"]);
      if (name !== null) names.add(name);
      yield isTwice ? null : proxy;
    }
  }

  #reportTwice(name: string, path: Path): void {
    const { report } = this.#context;
    const message = `proxy ${name} is the duplicate name`;
    if (this.#tolerant) report.warning(path, `${message}; it is left out`);
    else report.error(path, message);
  }

  #tryRead(item: unknown, path: Path, prefix: string): ProxyConfig | null {
    let proxy: ProxyConfig | null = null;
    const [error] = this.#context.report.trial(() => {
      proxy = this.#read(item, path, prefix);
    });
    const nodeName = peek(item, "name", "hyphen");
    if (error === undefined) return proxy;
    if (nodeName === null) {
      this.#context.report.warning(error.path, `${error.message}; it is left out`);
      return null;
    }
    const type = peek(item, "type", "hyphen") ?? "";
    const why = error.message.replace(`${prefix}: `, "");
    const node = { ...NO_COMMON, name: nodeName, type, protocol: this.#protocols.get(type) ?? null };
    return this.#inertNode(node, why, error.path, prefix);
  }

  /** A node that keeps its place and cannot be dialled. */
  #inertNode(
    node: Omit<ProxyConfig, "inert" | "options">,
    why: string,
    path: Path,
    prefix: string,
  ): ProxyConfig {
    const about = { name: node.name, what: `${why}; ${STAYS}` };
    this.#context.report.warning(path, `${prefix}: ${node.name}: ${about.what}`, "value", about);
    return { ...node, inert: why, options: {} };
  }

  #read(item: unknown, path: Path, prefix: string): ProxyConfig | null {
    const { report } = this.#context;
    if (!isItemMap(this.#context, item, path, prefix)) return null;
    if ((peek(item, "name", "hyphen") ?? "") === "") {
      report.warning([...path, "name"], `${prefix}: 'name' is empty; the node is left out`);
      return null;
    }
    const type = peek(item, "type", "hyphen");
    const protocol = type === null ? null : (this.#protocols.get(type) ?? null);
    if (type !== null && protocol === null) return this.#readUnknown(item, type, path, prefix);
    const own = protocol?.outbound?.schema ?? NO_FIELDS;
    const shape = this.#shapeOf(type, protocol);
    const nodeName = peek(item, "name", "hyphen");
    const prepared = this.#context.prepare(shape, item, path, "hyphen", prefix, nodeName);
    const read = readBoth(this.#context, proxyFields, own, prepared, path, prefix);
    if (read === null) return null;
    const { common, options } = read;
    const node = { ...commonOf(common), protocol };
    const badInterface = interfaceNameFault(common["interface-name"]);
    if (badInterface !== null)
      return this.#inertNode(node, `'interface-name' ${badInterface}`, [...path, "interface-name"], prefix);
    const [lack] = read.unsupported;
    if (lack !== undefined) return this.#inertNode(node, issueText(lack), [...path, ...lack.path], prefix);
    if (!IP_VERSIONS.some((word) => word === common["ip-version"].toLowerCase()))
      report.warning(
        [...path, "ip-version"],
        `${prefix}: 'ip-version' ${common["ip-version"]} is unknown and means dual${suggestion(common["ip-version"], IP_VERSIONS)}`,
      );
    const { server }: { readonly server?: unknown } = options;
    if (typeof server === "string" && !isHost(server))
      report.warning(
        [...path, "server"],
        `${prefix}: 'server' expected a name or an address, without scheme, port or blanks, got ${show(server)}; it cannot be dialled`,
      );
    for (const { key, what } of nodeNotes(options))
      report.warning([...path, ...key], `${prefix}: ${common.name}: ${what}`, "value", {
        name: common.name,
        what,
      });
    for (const key of ["tfo", "mptcp"] as const) if (common[key]) this.#warnOfIdle(key, path, prefix);
    return { ...node, inert: null, options };
  }

  /** Once: subscriptions have it on every node. */
  #warnOfIdle(key: "tfo" | "mptcp", path: Path, prefix: string): void {
    if (this.#idleKeys.has(key)) return;
    this.#idleKeys.add(key);
    this.#context.report.warning(
      [...path, key],
      `${prefix}: '${key}' has no effect, here and on others`,
      "key",
    );
  }

  /** A word of the ecosystem that this build does not speak costs one node, not the file. */
  #readUnknown(item: unknown, type: string, path: Path, prefix: string): ProxyConfig | null {
    const { report } = this.#context;
    const at = [...path, "type"];
    if (!FOREIGN_PROXY_TYPES.includes(type)) {
      report.error(at, `${prefix}: unsupport proxy type: ${type}${report.suggest(type, this.#knownTypes)}`);
      return null;
    }
    const prepared = this.#context.prepare(this.#shapeOf(type, null), item, path, "hyphen", prefix);
    const read = readBoth(this.#context, proxyFields, NO_FIELDS, prepared, path, prefix);
    if (read === null) return null;
    const node = { ...commonOf(read.common), protocol: null };
    return this.#inertNode(node, `type ${type} is not in this build`, at, prefix);
  }

  #shapeOf(type: string | null, protocol: Protocol | null): z.ZodObject {
    const key = type ?? "";
    let shape = this.#shapes.get(key);
    if (shape === undefined) {
      const schema = protocol?.outbound?.schema;
      // Without its protocol the keys that a node may have are unknown, so none is reported as unknown.
      shape = schema === undefined ? z.looseObject(proxyFields.shape) : joined(proxyFields, schema);
      this.#shapes.set(key, shape);
    }
    return shape;
  }
}

/** What a node has that could not be read as one. */
const NO_COMMON = {
  udp: false,
  interfaceName: "",
  routingMark: 0,
  ipVersion: "dual",
  dialerProxy: null,
} as const satisfies Partial<ProxyConfig>;

function commonOf(common: z.output<typeof proxyFields>): Omit<ProxyConfig, "protocol" | "inert" | "options"> {
  return {
    name: common.name,
    type: common.type,
    udp: common.udp,
    interfaceName: common["interface-name"],
    routingMark: common["routing-mark"],
    ipVersion: IP_VERSIONS.find((word) => word === common["ip-version"].toLowerCase()) ?? "dual",
    dialerProxy: common["dialer-proxy"] === "" ? null : common["dialer-proxy"],
  };
}

function isHost(text: string): boolean {
  return parseIp(text) !== null || !/[\s:/@[\]]/.test(text);
}

/**
 * Why nodes cannot be dialled by their `dialer-proxy`, by name: it must name something, and following it from node to
 * node must come to an end. A group may pick something else, so a circle through one is only said.
 */
export function dialerProxyFaults(
  context: Context,
  proxies: readonly { readonly proxy: ProxyConfig; readonly path: Path }[],
  membersOf: ReadonlyMap<string, readonly string[]>,
  known: ReadonlySet<string>,
): ReadonlyMap<string, string> {
  const { report } = context;
  const faults = new Map<string, string>();
  const dialer = new Map<string, string>();
  for (const { proxy, path } of proxies) {
    if (proxy.dialerProxy === null) continue;
    if (known.has(proxy.dialerProxy)) dialer.set(proxy.name, proxy.dialerProxy);
    else {
      const why = `dialer-proxy ${proxy.dialerProxy} not found${report.suggest(proxy.dialerProxy, known)}`;
      faults.set(proxy.name, why);
      report.warning([...path, "dialer-proxy"], `proxy ${proxy.name}: ${why}; ${STAYS}`);
    }
  }
  const paths = new Map(proxies.map(({ proxy, path }) => [proxy.name, path]));
  const say = (circle: readonly string[], rest: string): string => {
    const text = `circular dialer-proxy: ${[...circle, circle[0]].join(" -> ")}`;
    const name = circle.find((part) => dialer.has(part));
    const path = name === undefined ? undefined : paths.get(name); // none: groups alone, their own check says so
    if (path !== undefined) report.warning([...path, "dialer-proxy"], `proxy ${name}: ${text}; ${rest}`);
    return text;
  };
  const nodeOf = (name: string): readonly string[] => {
    const through = dialer.get(name);
    return through === undefined || !paths.has(through) ? [] : [through];
  };
  const nodeCircles = findCircles(dialer.keys(), nodeOf);
  for (const circle of nodeCircles) {
    const why = say(circle, "none of these nodes can be dialled");
    for (const name of circle) faults.set(name, why);
  }
  if (nodeCircles.length > 0) return faults;
  const next = (name: string): readonly string[] => {
    const through = dialer.get(name);
    return through === undefined ? (membersOf.get(name) ?? []) : [through];
  };
  for (const circle of findCircles(dialer.keys(), next))
    say(circle, "while its groups pick what leads back, it cannot be dialled");
  return faults;
}
