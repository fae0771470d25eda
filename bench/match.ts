/** What it costs to match: tables by themselves, and whole decisions over long rule lists. */
import { NO_NEIGHBOURS } from "../test/support/no-neighbours.ts";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Outbound } from "#core/outbound.ts";
import type { Facts, Rule } from "#core/rule.ts";
import type { Destination, Ip, Metadata } from "#core/session.ts";
import { CidrTable } from "#net/address/cidr-trie.ts";
import { parseCidr } from "#net/address/cidr.ts";
import type { Cidr } from "#net/address/cidr.ts";
import { parseDomainPattern } from "#lib/domain-pattern.ts";
import { DomainTable, SUFFIX } from "#lib/domain-table.ts";
import { ipFromBytes, LOOPBACK_V4 } from "#net/address/ip.ts";
import { compileLinear } from "#router/linear-pattern.ts";
import { openRouterInSteps } from "#router/router.ts";
import type { RuleRouter } from "#router/rule-router.ts";
import { ruleTypeOf } from "#router/rules/index.ts";
import { factsOf } from "#router/session-facts.ts";
import { dataOfTables, decide, MAIN_LIST, openTables } from "#router/tables/decide.ts";
import { atOnce } from "#lib/steps.ts";

export const NAME = "match";

type Out = (line: string) => void;

const COUNT = 100_000;
const QUESTIONS = 1 << 16;
const LOOKUPS = 1 << 20;

export async function run(out: Out): Promise<void> {
  const random = generator(1);
  const names = Array.from({ length: COUNT }, (_, at) => randomName(random, at));
  const cidrs = Array.from({ length: COUNT }, () => randomCidr(random));
  domains(out, "100,000 domain suffixes", names, random);
  networks(out, "100,000 IPv4 networks", cidrs, random);
  networks(
    out,
    "100,000 IPv6 networks",
    Array.from({ length: COUNT }, () => randomCidr6(random)),
    random,
  );
  realLists(out, random);
  patterns(out);
  await decisions(out, names, cidrs, random);
}

function domains(out: Out, title: string, names: readonly string[], random: () => number): void {
  const covers = new Uint8Array(names.length).fill(SUFFIX);
  const [table, buildMs] = timed(() => DomainTable.of(names, covers));
  const questions = halves(random, (hit) =>
    hit ? `www.${pick(names, random)}` : `www.${randomName(random, COUNT)}`,
  );
  report(out, `${title}, lookup`, (at) => table.lowest(questions[at] as string));
  out(`  ${title}: built in ${buildMs.toFixed(0)} ms, ${mebibytes(table.sizeBytes)} MiB`);
}

function networks(out: Out, title: string, cidrs: readonly Cidr[], random: () => number): void {
  const [table, buildMs] = timed(() => new CidrTable(cidrs));
  const length = (cidrs[0] as Cidr).bytes.length;
  const questions = halves(random, (hit) => {
    const bytes = hit ? pick(cidrs, random).bytes : randomBytes(random, length);
    if (!hit && length === 4) bytes[0] = 127; // in none of the random networks
    return bytes;
  });
  const texts = questions.map((bytes) => ipFromBytes(bytes));
  report(out, `${title}, text, lowest rule`, (at) => table.lowest(texts[at] as Ip));
  report(out, `${title}, bytes, longest prefix`, (at) => table.longest(questions[at] as Uint8Array));
  out(`  ${title}: built in ${buildMs.toFixed(0)} ms, ${mebibytes(table.sizeBytes)} MiB`);
}

/** Lists as users download them, where they lie beside the checkout or where WEIR_DATA names them. */
function realLists(out: Out, random: () => number): void {
  const beside = join(dirname(dirname(fileURLToPath(import.meta.url))), "../shared/data");
  const folder = process.env.WEIR_DATA ?? beside;
  const linesOf = (file: string) =>
    readFileSync(join(folder, file), "utf8")
      .split("\n")
      .filter((line) => line !== "");
  if (!existsSync(join(folder, "geosite/cn.list"))) return out(`SKIP match real lists: ${folder} has none`);
  const names = linesOf("geosite/cn.list").flatMap((line) => parseDomainPattern(line)?.name ?? []);
  domains(out, `geosite cn (${names.length})`, names, random);
  const cidrs = linesOf("geoip/cn.list").flatMap((line) => parseCidr(line) ?? []);
  networks(
    out,
    `geoip cn (${cidrs.length})`,
    cidrs.filter(({ bytes }) => bytes.length === 4),
    random,
  );
}

function patterns(out: Out): void {
  const pattern = compileLinear("^ad[sx]?[0-9]*\\.");
  const hosts = ["www.example.org", "ads1.example.org", "a.b.c.d", "adserver.test"];
  report(out, "DOMAIN-REGEX, ordinary pattern", (at) => Number(pattern.test(hosts[at & 3] as string)));
  const hostile = compileLinear("(a+)+$");
  const text = `${"a".repeat(253)}!`;
  hostile.test(text); // the first run switches engines
  const [, ms] = timed(() => hostile.test(text));
  out(`  DOMAIN-REGEX, (a+)+$ over 253 letters: ${(ms * 1000).toFixed(0)} µs`);
}

async function decisions(
  out: Out,
  names: readonly string[],
  cidrs: readonly Cidr[],
  random: () => number,
): Promise<void> {
  const lines = [
    ...names.map((name) => ["DOMAIN-SUFFIX", name] as const),
    ...cidrs.map(({ bytes, bits }) => ["IP-CIDR", `${ipFromBytes(bytes)}/${bits}`] as const),
    ["MATCH", ""] as const,
  ];
  const before = process.memoryUsage().rss;
  const [router, buildMs] = timed(() => routerOf(lines));
  const rss = process.memoryUsage().rss - before;
  const questions = halves(random, (hit): Metadata => {
    const host = hit ? `www.${pick(names, random)}` : null;
    const ip = hit ? null : ipFromBytes(randomBytes(random, 4));
    return metadataOf({ host, ip, port: 443 });
  });
  const { signal } = new AbortController();
  for (const round of ["warm", "measured"]) {
    const cpu = process.cpuUsage();
    const started = performance.now();
    for (let at = 0; at < QUESTIONS; at++) await router.route(questions[at] as Metadata, signal);
    if (round === "measured") line(out, "200,001 rules, whole decision", started, cpu, QUESTIONS);
  }
  out(`  200,001 rules: parsed and compiled in ${buildMs.toFixed(0)} ms, ${mebibytes(rss)} MiB of memory`);
  const [, viewMs] = timed(() => router.views());
  out(`  200,001 rules: counters read in ${viewMs.toFixed(0)} ms`);
  elsewhere(out, "200,001 rules", router, questions);
  const words = Array.from(
    { length: 10_000 },
    (_, at) => ["DOMAIN-KEYWORD", randomName(random, at)] as const,
  );
  elsewhere(out, "10,000 key words", routerOf([...words, ["MATCH", ""]]), questions);
}

/** What another thread has of the rules: what it costs to hand them over, and to decide by them there. */
function elsewhere(out: Out, title: string, { lists }: RuleRouter, questions: readonly Metadata[]): void {
  const [data, dataMs] = timed(() => dataOfTables(lists));
  const [copy, copyMs] = timed(() => structuredClone(data));
  const [tables, openMs] = timed(() => openTables(copy));
  const facts = questions.map((one) => factsOf(one, one, "strict"));
  const times = [dataMs, copyMs, openMs].map((ms) => ms.toFixed(1));
  out(`  ${title}, for another thread: gathered, copied and opened in ${times.join(", ")} ms`);
  const count = QUESTIONS / 16;
  for (const round of ["warm", "measured"]) {
    const cpu = process.cpuUsage();
    const started = performance.now();
    for (let at = 0; at < count; at++) decide(tables, MAIN_LIST, facts[at] as Facts);
    if (round === "measured") line(out, `${title}, decision there`, started, cpu, count);
  }
}

function routerOf(lines: readonly (readonly [type: string, payload: string])[]): RuleRouter {
  const nothing = () => null;
  const scope = {
    ruleSet: nothing,
    geosite: nothing,
    geoip: nothing,
    asn: nothing,
    inboundTypes: new Set<string>(),
  };
  const rules = lines.map(([name, payload], index): Rule => {
    const type = ruleTypeOf(name);
    if (type === undefined) throw new Error(`no rule type ${name}`);
    const parsed = type.parse(payload, { noResolve: false, source: false }, scope);
    return { index, type: name, apiType: type.apiType, target: "DIRECT", ...parsed };
  });
  const refuse = () => Promise.reject(new Error("nothing is dialled here"));
  const direct: Outbound = {
    name: "DIRECT",
    type: "Direct",
    networks: new Set(["tcp", "udp"]),
    connect: refuse,
    associate: refuse,
    [Symbol.asyncDispose]: async () => {},
  };
  return atOnce(
    openRouterInSteps({
      rules,
      subRules: new Map(),
      mode: () => "rule",
      outbound: () => direct,
      global: direct,
      direct,
      resolver: { lookup: refuse },
      processes: { uid: async () => null, process: async () => null },
      neighbours: NO_NEIGHBOURS,
      findProcessMode: "strict",
      nowMs: () => performance.now(),
    }),
  );
}

function metadataOf(destination: Destination): Metadata {
  const endpoint = { ip: LOOPBACK_V4, port: 1 };
  const inbound = { name: "in", type: "Socks5", user: null, local: endpoint, ruleList: null, target: null };
  return { id: "bench", network: "tcp", source: endpoint, destination, inbound, dscp: null, acceptedAtMs: 0 };
}

/** The median of five rounds, by CPU time, with its wall time. */
function report(out: Out, title: string, look: (at: number) => number): void {
  const rounds = Array.from({ length: 6 }, () => {
    const cpu = process.cpuUsage();
    const started = performance.now();
    let sum = 0;
    for (let at = 0; at < LOOKUPS; at++) sum += look(at & (QUESTIONS - 1));
    const { user, system } = process.cpuUsage(cpu);
    return {
      cpuNs: ((user + system) * 1000) / LOOKUPS,
      wallNs: ((performance.now() - started) * 1e6) / LOOKUPS,
      sum,
    };
  }).slice(1); // the first round warms up
  const median = rounds.toSorted((a, b) => a.cpuNs - b.cpuNs)[2];
  if (median !== undefined)
    out(`  ${title}: ${median.wallNs.toFixed(0)} ns, ${median.cpuNs.toFixed(0)} ns CPU`);
}

function line(out: Out, title: string, started: number, before: NodeJS.CpuUsage, count: number): void {
  const wallNs = ((performance.now() - started) * 1e6) / count;
  const { user, system } = process.cpuUsage(before);
  out(`  ${title}: ${wallNs.toFixed(0)} ns, ${(((user + system) * 1000) / count).toFixed(0)} ns CPU`);
}

function timed<T>(make: () => T): readonly [T, ms: number] {
  const started = performance.now();
  return [make(), performance.now() - started];
}

function halves<T>(random: () => number, make: (hit: boolean) => T): readonly T[] {
  return Array.from({ length: QUESTIONS }, () => make(random() < 0.5));
}

/** The same numbers in every run (mulberry32). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
}

function pick<T>(list: readonly T[], random: () => number): T {
  return list[Math.floor(random() * list.length)] as T;
}

function randomName(random: () => number, salt: number): string {
  const zone = pick(["com", "org", "net", "co.uk", "com.cn", "io"], random);
  return `${Math.floor(random() * 1e12).toString(36)}${salt.toString(36)}.${zone}`;
}

function randomBytes(random: () => number, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => Math.floor(random() * 256));
}

function randomCidr(random: () => number): Cidr {
  const bytes = randomBytes(random, 4);
  if (bytes[0] === 127) bytes[0] = 128;
  const bits = 16 + Math.floor(random() * 17);
  return parseCidr(`${ipFromBytes(bytes)}/${bits}`) as Cidr;
}

function randomCidr6(random: () => number): Cidr {
  const bytes = randomBytes(random, 16);
  bytes[0] = 0x20;
  return parseCidr(`${ipFromBytes(bytes)}/${24 + Math.floor(random() * 41)}`) as Cidr;
}

function mebibytes(bytes: number): string {
  return (bytes / 1048576).toFixed(1);
}
