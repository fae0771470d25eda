/**
 * The classifier as a plane of kernel-direct: maps, program, ports. When anything fails it takes itself out of the way
 * first, so that nftables decides about every packet again (kernel-direct.md §4.8).
 */
import type { Prefix } from "#core/capture.ts";
import type { ClassifierSettings } from "#core/kernel-direct.ts";
import type { Ip } from "#core/session.ts";
import type { Changes, Plane } from "#kernel-direct/plane.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import { bytesOfIp } from "#net/address/ip.ts";
import type { Bpf } from "#platform/linux/bpf.ts";
import { listLinks, type Link } from "#platform/linux/netlink/links.ts";
import type { NetlinkSocket } from "#platform/linux/netlink/socket.ts";
import { Maps, type Count } from "./maps.ts";
import { attach, removeLeftovers, resolvePorts } from "./ports.ts";
import { addressPrefix, fixedContent, isIpv6, learntDecision, networkOf, ownPrefix } from "./prefixes.ts";
import type { Decision } from "./prefixes.ts";
import { classifierProgram, DECISION } from "./program.ts";

export interface ClassifierOptions extends Omit<ClassifierSettings, "required" | "redirects" | "inputMark"> {
  /** Name of the TUN that PROXY packets are sent into; null: they are marked. */
  readonly redirectTo: string | null;
  readonly fakeRanges: readonly Prefix[];
  /** The flow cache of a classifier with the same options, as a descriptor that the caller closes; null: a new one. */
  readonly ways: number | null;
}

export interface ClassifierEnv {
  readonly bpf: Bpf;
  readonly netlink: NetlinkSocket;
  readonly possibleCpus: number;
  /** All addresses of the machine, now. */
  ownAddresses(): readonly Ip[];
  /** Those of its devices, now. */
  networks(): readonly Prefix[];
  nowMs(): number;
  /** It has taken itself out of the way; called once. */
  onFailed(error: unknown): void;
}

export interface ClassifierCounts {
  readonly direct: Count;
  readonly proxy: Count;
  readonly flowHits: Count;
}

export class Classifier implements Plane, Disposable {
  readonly options: ClassifierOptions;
  updatedAtMs: number;
  readonly #env: ClassifierEnv;
  readonly #maps: Maps;
  readonly #program: number;
  readonly #ports = new Map<number, { readonly link: Link; readonly attached: Disposable }>();
  readonly #direct = new Set<Ip>();
  readonly #proxy = new Set<Ip>();
  #fixed: ReadonlyMap<string, Decision> = new Map();
  /** The networks around: nothing that is learnt of their hosts counts. */
  #around = new CidrTable([]);
  /** Learnt addresses that found no room. */
  #leftOut = false;
  #open = true;

  /** Everything in the order of §4.5; throws with nothing left behind. */
  constructor(options: ClassifierOptions, env: ClassifierEnv) {
    this.options = options;
    this.#env = env;
    using undo = new DisposableStack();
    const links = listLinks(env.netlink);
    const ports = resolvePorts(options.interfaces, links);
    const tun = links.find(({ name }) => name === options.redirectTo);
    if (options.redirectTo !== null && tun === undefined)
      throw new Error(`kernel-direct-ebpf-proxy-redirect: there is no device ${options.redirectTo}`);
    removeLeftovers(env.netlink, links);
    const { maxEntries: prefixes, flowEntries: flows, ways } = options;
    this.#maps = undo.use(new Maps(env.bpf, { prefixes, flows, ways }, env.possibleCpus));
    this.#fill();
    const { directMark, proxyMark } = options;
    const maps = this.#maps.descriptors;
    const program = classifierProgram({ maps, directMark, proxyMark, redirectTo: tun?.index ?? null });
    this.#program = env.bpf.loadClassifier(program, "svc_kdirect");
    undo.defer(() => env.bpf.close(this.#program));
    undo.defer(() => this.#detach());
    for (const port of ports) this.#attach(port);
    this.updatedAtMs = env.nowMs();
    undo.move();
  }

  get ports(): readonly string[] {
    return Array.from(this.#ports.values(), ({ link }) => link.name).sort();
  }

  /** Prefixes in the kernel, by decision and by family. */
  get prefixes(): Readonly<Record<"ipv4" | "ipv6" | keyof typeof DECISION, number>> {
    const counts = { ipv4: 0, ipv6: 0, direct: 0, proxy: 0, bypass: 0 };
    for (const [prefix, decision] of this.#maps.content) {
      counts[isIpv6(prefix) ? "ipv6" : "ipv4"]++;
      if (decision === DECISION.direct) counts.direct++;
      else if (decision === DECISION.proxy) counts.proxy++;
      else counts.bypass++;
    }
    return counts;
  }

  /** The flow cache, for a classifier that takes the place of this one. */
  get ways(): number {
    return this.#maps.descriptors.flows;
  }

  get counts(): ClassifierCounts {
    return {
      direct: this.#maps.count("direct"),
      proxy: this.#maps.count("proxy"),
      flowHits: this.#maps.count("flowHits"),
    };
  }

  async apply({ direct, proxy }: Changes): Promise<void> {
    for (const [set, { add, remove }] of [
      [this.#direct, direct],
      [this.#proxy, proxy],
    ] as const) {
      for (const ip of remove) set.delete(ip);
      for (const ip of add) set.add(ip);
    }
    const touched = [direct.remove, direct.add, proxy.remove, proxy.add].flat();
    this.#guarded(() => {
      const changes = this.#differencesOf(touched);
      if (changes === null) this.#fill();
      else if (changes.size > 0) this.#maps.change(changes);
    });
  }

  async replace(direct: readonly Ip[], proxy: readonly Ip[]): Promise<void> {
    for (const [set, all] of [
      [this.#direct, direct],
      [this.#proxy, proxy],
    ] as const) {
      set.clear();
      for (const ip of all) set.add(ip);
    }
    this.#guarded(() => this.#fill());
  }

  /**
   * Devices or addresses have changed: attaches the program to new ports of a bridge, forgets ports that have left,
   * lets new local addresses pass.
   */
  refresh(): void {
    this.#guarded(() => {
      const links = listLinks(this.#env.netlink);
      const names = this.options.interfaces.filter((name) => links.some((link) => link.name === name));
      const ports = resolvePorts(names, links);
      for (const [index, { attached }] of this.#ports)
        if (!ports.some((port) => port.index === index)) {
          attached[Symbol.dispose]();
          this.#ports.delete(index);
        }
      for (const port of ports) if (!this.#ports.has(port.index)) this.#attach(port);
      this.#fill();
    });
  }

  [Symbol.dispose](): void {
    if (!this.#open) return;
    this.#open = false;
    using all = new DisposableStack(); // when one port cannot be detached the others are closed all the same
    all.use(this.#maps);
    all.defer(() => this.#env.bpf.close(this.#program));
    all.defer(() => this.#detach());
  }

  #attach(link: Link): void {
    const { bpf, netlink } = this.#env;
    this.#ports.set(link.index, { link, attached: attach(bpf, netlink, this.#program, link) });
  }

  /** Every port is tried; the first failure is thrown when all have been. */
  #detach(): void {
    using all = new DisposableStack();
    for (const { attached } of this.#ports.values()) all.use(attached);
    this.#ports.clear();
  }

  /** After a failure it does nothing any more, and reports the failure once. */
  #guarded(work: () => void): void {
    if (!this.#open) return;
    try {
      work();
      this.updatedAtMs = this.#env.nowMs();
    } catch (error) {
      try {
        this[Symbol.dispose]();
      } finally {
        this.#env.onFailed(error);
      }
    }
  }

  /** What these addresses come to; null: that cannot be said without all the others, for want of room. */
  #differencesOf(addresses: readonly Ip[]): ReadonlyMap<string, Decision | null> | null {
    const { proxyMode, maxEntries } = this.options;
    const changes = new Map<string, Decision | null>();
    for (const ip of addresses) {
      const prefix = addressPrefix(ip);
      const decision = learntDecision(this.#verdict(ip), this.#fixed.get(prefix), proxyMode);
      if (decision !== (this.#maps.content.get(prefix) ?? null)) changes.set(prefix, decision);
    }
    const most = this.#maps.content.size + changes.size;
    return this.#leftOut || most > maxEntries ? null : changes;
  }

  #verdict(ip: Ip): "direct" | "proxy" | null {
    if (this.#around.holds(bytesOfIp(ip))) return null;
    return this.#proxy.has(ip) ? "proxy" : this.#direct.has(ip) ? "direct" : null;
  }

  /** Brings the maps to what is wanted now, by the difference. */
  #fill(): void {
    const { proxyMode, maxEntries, directPrefixes, proxyPrefixes, fakeRanges } = this.options;
    const own = this.#env.ownAddresses().map(ownPrefix);
    const networks = this.#env.networks().map(networkOf);
    this.#around = new CidrTable(networks);
    this.#fixed = fixedContent({
      direct: directPrefixes,
      proxy: proxyPrefixes,
      bypass: [...networks, ...own, ...fakeRanges],
      proxyMode,
    });
    const wanted = new Map(this.#fixed);
    const room = { 4: maxEntries, 6: maxEntries };
    for (const prefix of wanted.keys())
      if (--room[isIpv6(prefix) ? 6 : 4] < 0)
        throw new Error(`kernel-direct-ebpf-max-entries: ${maxEntries} have no room for the fixed prefixes`);
    this.#leftOut = false;
    if (proxyMode) this.#addLearnt(wanted, "proxy", room);
    this.#addLearnt(wanted, "direct", room);
    const changes = differences(this.#maps.content, wanted);
    if (changes.size > 0) this.#maps.change(changes);
  }

  /** What finds no room is left out: it falls to the default of the maps, or to nftables. */
  #addLearnt(wanted: Map<string, Decision>, verdict: "direct" | "proxy", room: Record<4 | 6, number>): void {
    for (const ip of verdict === "direct" ? this.#direct : this.#proxy) {
      const prefix = addressPrefix(ip);
      const before = wanted.get(prefix);
      const decision = learntDecision(this.#verdict(ip), before, this.options.proxyMode);
      if (decision === null || decision === before) continue;
      if (before === undefined && --room[isIpv6(prefix) ? 6 : 4] < 0) this.#leftOut = true;
      else wanted.set(prefix, decision);
    }
  }
}

function differences(
  is: ReadonlyMap<string, Decision>,
  wanted: ReadonlyMap<string, Decision>,
): ReadonlyMap<string, Decision | null> {
  const changes = new Map<string, Decision | null>();
  for (const prefix of is.keys()) if (!wanted.has(prefix)) changes.set(prefix, null);
  for (const [prefix, decision] of wanted) if (is.get(prefix) !== decision) changes.set(prefix, decision);
  return changes;
}
