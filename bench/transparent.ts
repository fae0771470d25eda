/**
 * What a router carries for its clients: by forwarding alone, by redir and tproxy, and by a TUN in its ways. Client, router
 * and origin are namespaces of one machine, so figures are ratios to plain forwarding of the same round; CPU is that of
 * weir and of both ends of the load, because the kernel's own work is charged to the process that happens to run.
 */
import { execFile, type ChildProcess } from "node:child_process";
import { promisify } from "node:util";
import { skipNetns } from "../test/support/netns.ts";
import { openRoutedRow } from "../test/support/netns-far-away.ts";
import { manual, ORIGIN, ROUTER, type Row } from "../test/support/netns-row.ts";
import { startCore } from "../test/support/start-core.ts";
import { ask } from "./relay.ts";
import { cpuSeconds, endOf, forkPeer, forkServer, threadSeconds } from "./relay-subjects.ts";

export const NAME = "transparent";

const exec = promisify(execFile);
const ROUNDS = Number(process.env["WEIR_BENCH_ROUNDS"] ?? 3);
const SECONDS = Number(process.env["WEIR_BENCH_SECONDS"] ?? 3);

interface Subject {
  readonly name: string;
  /** Null: the kernel forwards. */
  readonly config: string | null;
  /** Has it a way for UDP? */
  readonly udp: boolean;
  /**
   * Clients ask it by SOCKS5, or go to the fake address of a name: new connections alone are measured. Absent: they go to the
   * address itself.
   */
  readonly by?: "SOCKS5" | "fake address";
  setUp?(row: Row): Promise<void>;
}

const rest = `
dns: { enable: true, nameserver: ["${ORIGIN[0]}"] }
rules: ["MATCH,DIRECT"]
`;
/** As `rest`. */
const FAKES = `dns: { enable: true, listen: "${ROUTER[0]}:53", enhanced-mode: fake-ip, nameserver: ["${ORIGIN[0]}"] }\n`;

const tun = (name: string, keys: string): Subject => ({
  name,
  config: `tun: { enable: true, device: weir-tun0, stack: system, auto-route: true, ${keys} }${rest}`,
  udp: true,
});

const redir = (name: string, keys = ""): Subject => ({
  name,
  config: `redir-port: 7892\nallow-lan: true\nrouting-mark: 6666\n${keys}${rest}`,
  udp: false,
  setUp: async ({ router }) => router.nft(manual("redir", "nft")),
});
const tproxy = (name: string, keys = ""): Subject => ({
  name,
  config: `tproxy-port: 7893\nallow-lan: true\nrouting-mark: 6666\ninterface-name: up0\n${keys}${rest}`,
  udp: true,
  setUp: async ({ router }) => {
    const routes = manual("tproxy", "sh").trimEnd().split("\n");
    await router.ip(...routes.map((line) => line.replace(/^ip /, "")));
    await router.nft(manual("tproxy", "nft"));
  },
});

const ALL: readonly Subject[] = [
  { name: "plain forwarding", config: null, udp: true },
  { name: "SOCKS5", config: `mixed-port: 7890\nallow-lan: true\n${rest}`, udp: false, by: "SOCKS5" },
  redir("redir"),
  {
    ...redir("redir, fake address"),
    config: `redir-port: 7892\nallow-lan: true\nrouting-mark: 6666\n${FAKES}rules: ["MATCH,DIRECT"]`,
    by: "fake address",
  },
  redir("redir, relay: portable", "relay: portable"),
  tproxy("tproxy"),
  tproxy("tproxy, relay: portable", "relay: portable"),
  tun("TUN, auto-redirect", "auto-redirect: true, auto-detect-interface: false"),
  tun("TUN, NAT, gso, MTU 1500", "auto-redirect: false, gso: true, mtu: 1500"),
  tun("TUN, NAT, no gso, MTU 9000", "auto-redirect: false, gso: false, mtu: 9000"),
  tun("TUN, NAT, no gso, MTU 1500", "auto-redirect: false, gso: false, mtu: 1500"),
];

/** WEIR_BENCH_WAYS: plain forwarding, and those whose name holds it. */
const SUBJECTS = ALL.filter(
  ({ name, config }) => config === null || name.includes(process.env["WEIR_BENCH_WAYS"] ?? ""),
);

interface Figure {
  readonly rate: number;
  /** Seconds of one core for one of what the rate counts. */
  readonly cpuEach: number;
  /** Of weir alone. */
  readonly weirEach: number;
  /** Of its main thread alone; absent: it was not looked at. */
  readonly mainEach?: number;
}

interface Load {
  readonly title: string;
  readonly udp: boolean;
  /** What the rate counts, and what its CPU time is shown in. */
  readonly unit: {
    readonly rate: string;
    readonly digits: number;
    readonly cpu: string;
    readonly of: number;
  };
  /** `asker` is the `load` of relay-peer.ts in the client's namespace. */
  measure(row: Row, asker: ChildProcess, pid: number | null, subject: Subject): Promise<Figure>;
}

const STREAM = { rate: "Gbit/s", digits: 2, cpu: "CPU s/Gbit", of: 1 };

function stream(title: string, ...args: readonly string[]): Load {
  const udp = args.includes("-u");
  return { title, udp, unit: STREAM, measure: (row, _, pid) => measureStream(row, args, pid) };
}

const CONNECTIONS: Load = {
  title: "new connections, 32 at a time",
  udp: false,
  unit: { rate: "a second", digits: 0, cpu: "CPU µs each", of: 1e6 },
  async measure(row, asker, pid, { by }) {
    const { child: sink, port } = await forkServer("./sink.ts", ["::"], row.origin.prefix);
    const host = by === "fake address" ? await row.near("dns", ROUTER[0]) : ORIGIN[0];
    const door =
      by === "SOCKS5"
        ? ({ host: ROUTER[0], port: 7890, to: { by: "socks", port } } as const)
        : { host, port, to: null };
    const task = { kind: "connections", door, host: ORIGIN[0], parallel: 32, ms: SECONDS * 1_000 } as const;
    await ask(asker, task); // a fresh process is not counted
    const ends = [asker.pid as number, sink.pid as number, pid];
    const before = ends.map(cpuSeconds);
    const mainBefore = pid === null ? 0 : threadSeconds(pid);
    const { amount, seconds } = await ask(asker, task);
    const mainEach = pid === null ? 0 : (threadSeconds(pid) - mainBefore) / amount;
    const used = ends.map((end, at) => cpuSeconds(end) - (before[at] as number));
    await endOf(sink);
    const sum = used.reduce((all, one) => all + one, 0);
    return {
      rate: amount / seconds,
      cpuEach: sum / amount,
      weirEach: (used[2] as number) / amount,
      mainEach,
    };
  },
};

/** WEIR_BENCH_LOADS: only those whose title holds it. */
const LOADS: readonly Load[] = [
  CONNECTIONS,
  stream("TCP up, 1 stream"),
  stream("TCP down, 1 stream", "-R"),
  stream("TCP up, 8 streams", "-P", "8"),
  stream("UDP up, 1,200 bytes, as fast as it goes", "-u", "-b", "0", "-l", "1200"),
  stream("UDP down, 1,200 bytes, as fast as it goes", "-R", "-u", "-b", "0", "-l", "1200"),
].filter(({ title }) => title.includes(process.env["WEIR_BENCH_LOADS"] ?? ""));

interface Report {
  readonly end: {
    readonly sum_received?: { readonly bits_per_second: number };
    readonly sum?: { readonly bits_per_second: number; readonly lost_percent: number };
    readonly cpu_utilization_percent: { readonly host_total: number; readonly remote_total: number };
  };
}

async function measureStream(row: Row, args: readonly string[], pid: number | null): Promise<Figure> {
  const before = cpuSeconds(pid);
  const [program, ...all] = [
    ...row.client.prefix,
    "iperf3",
    "-J",
    "-c",
    ORIGIN[0],
    "-t",
    String(SECONDS),
    ...args,
  ];
  const { stdout } = await exec(program as string, all, {
    maxBuffer: 1 << 26,
    timeout: (SECONDS + 20) * 1000,
  });
  const weir = (cpuSeconds(pid) - before) / SECONDS;
  const { end } = JSON.parse(stdout) as Report;
  const { host_total: host, remote_total: remote } = end.cpu_utilization_percent;
  const { sum_received: received, sum } = end;
  const bits = args.includes("-u")
    ? (sum?.bits_per_second ?? 0) * (1 - (sum?.lost_percent ?? 0) / 100)
    : (received?.bits_per_second ?? 0);
  const rate = bits / 1e9;
  return { rate, cpuEach: ((host + remote) / 100 + weir) / rate, weirEach: weir / rate };
}

async function tryOut(row: Row, subject: Subject, asker: ChildProcess): Promise<ReadonlyMap<string, Figure>> {
  const figures = new Map<string, Figure>();
  await using undo = new AsyncDisposableStack();
  const core =
    subject.config === null ? null : undo.use(await startCore(subject.config, { prefix: row.router.prefix }));
  await subject.setUp?.(row);
  undo.defer(async () => {
    await row.router.run("sh", "-c", TEAR_DOWN);
  });
  // bin/weir becomes the runtime, so its id is that of the process that works.
  for (const load of LOADS)
    if (load === CONNECTIONS || (subject.by === undefined && (!load.udp || subject.udp)))
      figures.set(load.title, await load.measure(row, asker, core?.pid ?? null, subject));
  if (core !== null) await core.stop();
  return figures;
}

const TEAR_DOWN =
  "nft flush ruleset; for family in -4 -6; do ip $family rule del fwmark 1 2>/dev/null; ip $family route flush table 100 2>/dev/null; done; true";

export async function run(out: (line: string) => void): Promise<void> {
  const streams = LOADS.some((load) => load !== CONNECTIONS) ? ["iperf3"] : [];
  const reason = skipNetns("transparent bench", "nft", ...streams);
  if (reason !== false) return out(reason);
  await using row = await openRoutedRow("bench");
  if (streams.length > 0) row.origin.start("iperf3", "-s");
  // A connection that has ended keeps its port for a minute, and the kernel would soon look long for a free one.
  for (const netns of [row.client, row.router])
    await netns.run("sysctl", "-qw", "net.ipv4.ip_local_port_range=10000 65000", "net.ipv4.tcp_tw_reuse=1");
  const asker = forkPeer("./relay-peer.ts", [], row.client.prefix);
  await using peers = new AsyncDisposableStack();
  peers.defer(() => endOf(asker));
  const rounds: Round[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const figures = new Map<string, ReadonlyMap<string, Figure>>();
    for (const subject of SUBJECTS) figures.set(subject.name, await tryOut(row, subject, asker));
    rounds.push(figures);
  }
  for (const one of LOADS) {
    out(`\n${one.title}: medians of ${ROUNDS} rounds of ${SECONDS} s`);
    for (const { name } of SUBJECTS) report(one, name, rounds, out);
  }
}

/** Figures of each load by each subject. */
type Round = ReadonlyMap<string, ReadonlyMap<string, Figure>>;

function report(
  { title, unit }: Load,
  name: string,
  rounds: readonly Round[],
  out: (line: string) => void,
): void {
  const all = rounds.flatMap((round) => {
    const figure = round.get(name)?.get(title);
    const plain = round.get("plain forwarding")?.get(title);
    return figure === undefined || plain === undefined ? [] : [{ figure, plain }];
  });
  if (all.length === 0) return;
  const median = (of: (one: (typeof all)[number]) => number) =>
    all.map(of).toSorted((left, right) => left - right)[all.length >> 1] as number;
  const cpu = (of: (one: Figure) => number) => (median(({ figure }) => of(figure)) * unit.of).toPrecision(3);
  out(
    [
      name.padEnd(28),
      `${median(({ figure }) => figure.rate).toFixed(unit.digits)} ${unit.rate}`.padStart(16),
      `${median(({ figure, plain }) => figure.rate / plain.rate).toFixed(2)} × plain`.padStart(14),
      `${unit.cpu} ${cpu(({ cpuEach }) => cpuEach)}`,
      `(${median(({ figure, plain }) => figure.cpuEach / plain.cpuEach).toFixed(2)} × plain,`,
      `weir ${cpu(({ weirEach }) => weirEach)}, its main thread ${cpu(({ mainEach = NaN }) => mainEach)})`,
    ].join(" "),
  );
}
