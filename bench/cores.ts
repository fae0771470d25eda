/**
 * What a new connection costs, and whom: load, sink and the measured program on CPUs of their own, each connection to a
 * destination that was not asked for before. The main thread does one thing at a time, so its share says how many connections
 * a second more cores could bring: rates for them are computed from both shares, and not measured where there are no such cores.
 */
import { readdirSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { ChildProcess } from "node:child_process";
import { ask } from "./relay.ts";
import {
  cpuSeconds,
  endOf,
  forkPeer,
  forkServer,
  haproxy,
  startWeir,
  threadSeconds,
  v2ray,
  type Subject,
} from "./relay-subjects.ts";
import { address, openScripted, reply, type ScriptedServer } from "../test/integration/dns-kit.ts";
import { nameAt, type SubjectAddress } from "./subject-address.ts";

export const NAME = "cores";

const [ROUNDS, WARM_ROUNDS, ROUND_MS] = [7, 4, 1_500];
const MORE_CORES = [4, 8, 16];

/** The two ends take a quarter of the cores each where there are four; on two cores they share one. */
function cpuSets(): Readonly<Record<"load" | "sink" | "subject", string>> {
  const count = availableParallelism();
  if (count < 4) return { load: "0", sink: "0", subject: `${count - 1}` };
  const part = Math.floor(count / 4);
  return {
    load: `0-${part - 1}`,
    sink: `${part}-${2 * part - 1}`,
    subject: `${2 * part}-${count - 1}`,
  };
}

const on = (cpus: string): readonly string[] => ["taskset", "-c", cpus];

/** None of them matches: 5,000 suffixes, 3,000 networks, 2,000 names, and a list of 100,000 names. */
function manyRules(): { rules: string; more: string; seed: (home: string) => void } {
  const several = (count: number, line: (at: number) => string): string[] =>
    Array.from({ length: count }, (_, at) => line(at));
  const rules = [
    ...several(5_000, (at) => `DOMAIN-SUFFIX,suffix-${at}.example.com,REJECT`),
    ...several(3_000, (at) => `IP-CIDR,10.${at >> 8}.${at & 255}.0/24,REJECT`),
    ...several(2_000, (at) => `DOMAIN,name-${at}.example.org,REJECT`),
    "RULE-SET,large,REJECT",
  ];
  const names = several(100_000, (at) => `host-${at}.example.net`);
  return {
    rules: rules.map((rule) => `  - ${rule}\n`).join(""),
    more: "rule-providers:\n  large: { type: file, behavior: domain, format: text, path: ./large.txt }\n",
    seed: (home) => writeFileSync(join(home, "large.txt"), names.join("\n")),
  };
}

const BY_NAME = "weir by name";

/** Each has an address of its own; the answers are asked for once. */
const NAMES = 1_000;
const addressAt = (number: number): string => `127.77.${number >> 8}.${number & 255}`;

/** Answers for the names of the load. */
function openNames(): Promise<ScriptedServer> {
  const addresses = new Map(Array.from({ length: NAMES }, (_, at) => [nameAt(at), addressAt(at)]));
  return openScripted((query) => {
    const [question] = query.questions;
    const ip = question?.type === 1 ? addresses.get(question.name) : undefined;
    return reply(query, ip === undefined ? [] : [address(question?.name ?? "", ip, 3_600)]);
  });
}

const namedConfig = (dnsPort: number, mode = "normal"): string =>
  `dns: { enable: true, ipv6: false, enhanced-mode: ${mode}, nameserver: ["127.0.0.1:${dnsPort}"] }
ipv6: false
`;

const SNIFFED = "sniffer: { enable: true, sniff: { TLS: { ports: [443] }, HTTP: { ports: [80] } } }\n";

type Open = (sinkPort: number, prefix: readonly string[], dnsPort: number) => Promise<Subject | null>;

const SUBJECTS: readonly Open[] = [
  (sinkPort, prefix) => startWeir(sinkPort, { prefix }),
  (sinkPort, prefix) => startWeir(sinkPort, { name: "weir behind 10,001 rules", prefix, ...manyRules() }),
  (sinkPort, prefix, dnsPort) => startWeir(sinkPort, { name: BY_NAME, prefix, more: namedConfig(dnsPort) }),
  (sinkPort, prefix, dnsPort) =>
    startWeir(sinkPort, {
      name: `${BY_NAME}, a rule on its address`,
      prefix,
      more: namedConfig(dnsPort),
      rules: "  - IP-CIDR,10.0.0.0/8,REJECT\n",
    }),
  (sinkPort, prefix, dnsPort) =>
    startWeir(sinkPort, {
      name: `${BY_NAME}, sniffer on`,
      prefix,
      more: `${namedConfig(dnsPort)}${SNIFFED}`,
    }),
  (sinkPort, prefix, dnsPort) =>
    startWeir(sinkPort, {
      name: "weir by address, fake-ip on",
      prefix,
      more: namedConfig(dnsPort, "fake-ip"),
    }),
  haproxy,
  v2ray,
];

/** CPU µs a connection. */
interface Row {
  readonly rate: number;
  readonly total: number;
  readonly main: number;
}

const TCP_MODE = "HAProxy";

function doorOf({ name, port, asked }: Subject, sinkPort: number): SubjectAddress {
  if (name === TCP_MODE) return { port, to: null };
  if (name.startsWith(BY_NAME))
    return { port: asked.socks ?? 0, to: { by: "socks", port: sinkPort, names: NAMES } };
  return { port: asked.socks ?? 0, to: { by: "socks", port: sinkPort, isNew: true } };
}

async function measure(load: ChildProcess, subject: Subject, sinkPort: number): Promise<Row> {
  const pid = subject.pid as number;
  const [total, main] = [cpuSeconds(pid), threadSeconds(pid)];
  const task = { kind: "connections", parallel: 32, ms: ROUND_MS } as const;
  const { amount, seconds } = await ask(load, { ...task, door: doorOf(subject, sinkPort) });
  return {
    rate: amount / seconds,
    total: ((cpuSeconds(pid) - total) * 1e6) / amount,
    main: ((threadSeconds(pid) - main) * 1e6) / amount,
  };
}

/** As many as all cores together, or the main thread alone, have time for. */
function computed(cores: number, { total, main }: Row): number {
  return Math.min((cores * 1e6) / total, 1e6 / main);
}

export async function run(out: (line: string) => void): Promise<void> {
  const sets = cpuSets();
  out(
    `cores: ${availableParallelism()}; load on CPU ${sets.load}, sink on ${sets.sink}, the program on ${sets.subject}`,
  );
  await using opened = new AsyncDisposableStack();
  const sink = await forkServer("./sink.ts", ["0.0.0.0"], on(sets.sink));
  opened.defer(() => endOf(sink.child));
  const load = forkPeer("./relay-peer.ts", [], on(sets.load));
  opened.defer(() => endOf(load));
  const dns = opened.use(await openNames());
  const rows = new Map<Subject, Row[]>();
  for (const open of SUBJECTS) {
    const subject = await open(sink.port, on(sets.subject), dns.port);
    if (subject === null)
      out("SKIP cores: haproxy or v2ray is not on the PATH (Debian packages haproxy, v2ray)");
    else rows.set(opened.use(subject), []);
  }
  for (let round = -WARM_ROUNDS; round < ROUNDS; round++)
    for (const [subject, found] of rows) {
      const row = await measure(load, subject, sink.port);
      if (round >= 0) found.push(row);
    }
  const [own = []] = rows.values();
  for (const [subject, found] of rows) out(lineOf(subject, found, own));
}

function lineOf({ name, pid }: Subject, found: readonly Row[], own: readonly Row[]): string {
  const middle = (value: (row: Row, at: number) => number): number => median(found.map(value));
  const row = {
    rate: middle(({ rate }) => rate),
    total: middle(({ total }) => total),
    main: middle(({ main }) => main),
  };
  const line = `${name}: ${row.rate.toFixed(0)} connections a second, CPU µs each ${row.total.toFixed(1)}`;
  const versus = middle(({ rate }, at) => (own[at]?.rate ?? Number.NaN) / rate);
  if (!name.startsWith("weir")) return `${line}, weir is ${versus.toFixed(2)} × this`;
  const more = MORE_CORES.map((cores) => `${cores}: ${computed(cores, row).toFixed(0)}`).join(", ");
  const ratio = own === found ? "" : `, ${(1 / versus).toFixed(2)} × the first`;
  return `${line}, of the main thread ${row.main.toFixed(1)} (${threadsOf(pid)} threads)${ratio}; computed a second on cores ${more}`;
}

function threadsOf(pid: number | null): number {
  return readdirSync(`/proc/${pid}/task`).length;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

if (import.meta.main) await run((line) => console.log(line));
