/** Runs inside a namespace with a bridge `lan` of the ports `p1` and `p2`: what happens to a classifier. Prints JSON. */
import { readdirSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { localNetworks } from "#capture/local-networks.ts";
import type { Ip } from "#core/session.ts";
import { Classifier, type ClassifierOptions } from "#kernel-direct/ebpf/classifier.ts";
import { parseIp } from "#net/address/ip.ts";
import { Bpf } from "#platform/linux/bpf.ts";
import { openLibc, SystemError, type Libc } from "#platform/linux/libc.ts";
import { NETLINK_ROUTE, NetlinkSocket } from "#platform/linux/netlink/socket.ts";
import { ip } from "./routing.ts";
import { ffiFor } from "#platform/ffi.ts";

const ffi = ffiFor("this test");
const libc = openLibc() as Libc;
const netlink = new NetlinkSocket(ffi, libc, NETLINK_ROUTE);

const OPTIONS: ClassifierOptions = {
  interfaces: ["lan", "lan"],
  maxEntries: 64,
  flowEntries: 64,
  directMark: 0x4000_0000,
  proxyMark: 0x2000_0000,
  proxyMode: true,
  redirectTo: null,
  directPrefixes: [],
  proxyPrefixes: [],
  fakeRanges: [],
  ways: null,
};

/** The kernel's bpf() with the call number `fails` refused; `older`: one without TCX. */
class FailingBpf extends Bpf {
  calls = 0;
  fails = 0;
  older = false;

  #next(): void {
    if (++this.calls === this.fails) throw new SystemError("bpf", 12); // ENOMEM
  }
  override createMap(...args: Parameters<Bpf["createMap"]>) {
    this.#next();
    return super.createMap(...args);
  }
  override update(...args: Parameters<Bpf["update"]>) {
    this.#next();
    super.update(...args);
  }
  override updateAll(...args: Parameters<Bpf["updateAll"]>) {
    this.#next();
    return super.updateAll(...args);
  }
  override delete(...args: Parameters<Bpf["delete"]>) {
    this.#next();
    return super.delete(...args);
  }
  override loadClassifier(...args: Parameters<Bpf["loadClassifier"]>) {
    this.#next();
    return super.loadClassifier(...args);
  }
  override attachIngress(...args: Parameters<Bpf["attachIngress"]>) {
    this.#next();
    if (this.older) throw new SystemError("attach", 22); // EINVAL
    return super.attachIngress(...args);
  }
}

function ownAddresses(): readonly Ip[] {
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return all.flatMap(({ address }) => parseIp(address) ?? []);
}

function open(bpf: Bpf, options: Partial<ClassifierOptions> = {}, failures: string[] = []): Classifier {
  const onFailed = (error: unknown) => void failures.push(String(error));
  const networks = () => localNetworks(netlink);
  const env = { bpf, netlink, possibleCpus: 64, ownAddresses, networks, nowMs: Date.now, onFailed };
  return new Classifier({ ...OPTIONS, ...options }, env);
}

const descriptors = () => readdirSync("/proc/self/fd").length;

const NOTHING = { add: [], remove: [] };

async function tell(classifier: Classifier, ...addresses: readonly string[]): Promise<void> {
  await classifier.apply({ direct: { add: addresses.map(ip), remove: [] }, proxy: NOTHING });
}

/** Refuses each call in turn until none is left; answers with how often creating failed, and updating. */
async function failEach(): Promise<unknown> {
  const seen = { creations: 0, updates: 0, failures: [] as string[] };
  for (let fails = 1; ; fails++) {
    const bpf = new FailingBpf(ffi, libc);
    bpf.fails = fails;
    let classifier: Classifier;
    try {
      classifier = open(bpf, {}, seen.failures);
    } catch {
      seen.creations++;
      continue;
    }
    await tell(classifier, "9.9.9.9", "2001:db8::1");
    await classifier.replace([], []);
    if (bpf.calls < fails) {
      classifier[Symbol.dispose]();
      return seen;
    }
    seen.updates++;
  }
}

async function show(older: boolean): Promise<unknown> {
  const bpf = new FailingBpf(ffi, libc);
  bpf.older = older;
  const failures: string[] = [];
  const classifier = open(bpf, {}, failures);
  await tell(classifier, "9.9.9.9", "2001:db8::1");
  console.log(JSON.stringify({ ports: classifier.ports, prefixes: classifier.prefixes }));
  await new Promise((resolve) => process.stdin.once("data", resolve));
  classifier.refresh();
  return { ports: classifier.ports, prefixes: classifier.prefixes, counts: classifier.counts, failures };
}

/** Closes one whose filters cannot be taken off: the way to them is gone. Answers with the descriptors that it leaves. */
async function stuck(): Promise<unknown> {
  const before = descriptors();
  const bpf = new FailingBpf(ffi, libc);
  bpf.older = true;
  const classifier = open(bpf);
  const held = descriptors() - before;
  netlink[Symbol.dispose]();
  let error = "";
  try {
    classifier[Symbol.dispose]();
  } catch (caught) {
    error = String(caught);
  }
  return { error, held, left: descriptors() + 1 - before }; // without the one to netlink
}

async function surplus(): Promise<unknown> {
  const classifier = open(new Bpf(ffi, libc), { maxEntries: 10 });
  const addresses = Array.from({ length: 30 }, (_, at) => ip(`9.9.9.${at}`));
  await classifier.apply({ direct: { add: addresses, remove: [] }, proxy: NOTHING });
  const full = classifier.prefixes;
  const proxied = { add: addresses.slice(0, 3), remove: [] };
  await classifier.apply({ direct: { add: [], remove: addresses.slice(0, 3) }, proxy: proxied });
  const both = classifier.prefixes;
  await classifier.apply({ direct: { add: [], remove: addresses.slice(3, 28) }, proxy: NOTHING });
  const few = classifier.prefixes;
  classifier[Symbol.dispose]();
  return { full, both, few };
}

/** Addresses of a network of this machine are learnt, one change at a time and all at once. Answers with how many count. */
async function neighbours(): Promise<unknown> {
  const classifier = open(new Bpf(ffi, libc));
  const [near, far] = [
    ["203.0.113.77", "203.0.113.78"],
    ["9.9.9.1", "9.9.9.2"],
  ].map((all) => all.map(ip));
  const learnt = { direct: [near![0]!, far![0]!], proxy: [near![1]!, far![1]!] };
  const counts = () => [classifier.prefixes.direct, classifier.prefixes.proxy];
  const before = counts();
  const add = (all: readonly Ip[]) => ({ add: all, remove: [] });
  await classifier.apply({ direct: add(learnt.direct), proxy: add(learnt.proxy) });
  const changed = counts();
  await classifier.replace([], []);
  await classifier.replace(learnt.direct, learnt.proxy);
  const replaced = counts();
  classifier[Symbol.dispose]();
  return { before, changed, replaced };
}

const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  "fail-each": failEach,
  tcx: () => show(false),
  clsact: () => show(true),
  stuck,
  surplus,
  neighbours,
};

console.log(JSON.stringify(await scenarios[process.argv[2] ?? ""]?.()));
process.exit(0);
