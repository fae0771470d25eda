/**
 * What a router carries for its clients: by forwarding alone, by redir and tproxy, and by a TUN in its ways. Client, router
 * and origin are namespaces of one machine, so figures are ratios to plain forwarding of the same round; CPU is that of
 * weir and of both ends of the load, because the kernel's own work is done on whoever runs.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { skipNetns } from "../test/support/netns.ts";
import { openRoutedRow } from "../test/support/netns-far-away.ts";
import { manual, ORIGIN, type Row } from "../test/support/netns-row.ts";
import { startCore } from "../test/support/start-core.ts";

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
  setUp?(row: Row): Promise<void>;
}

const rest = `
dns: { enable: true, nameserver: ["${ORIGIN[0]}"] }
rules: ["MATCH,DIRECT"]
`;
const tun = (name: string, keys: string): Subject => ({
  name,
  config: `tun: { enable: true, device: weir-tun0, stack: system, auto-route: true, ${keys} }${rest}`,
  udp: true,
});

const SUBJECTS: readonly Subject[] = [
  { name: "plain forwarding", config: null, udp: true },
  {
    name: "redir",
    config: `redir-port: 7892\nallow-lan: true\nrouting-mark: 6666${rest}`,
    udp: false,
    setUp: async ({ router }) => router.nft(manual("redir", "nft")),
  },
  {
    name: "tproxy",
    config: `tproxy-port: 7893\nallow-lan: true\nrouting-mark: 6666\ninterface-name: up0${rest}`,
    udp: true,
    setUp: async ({ router }) => {
      const routes = manual("tproxy", "sh").trimEnd().split("\n");
      await router.ip(...routes.map((line) => line.replace(/^ip /, "")));
      await router.nft(manual("tproxy", "nft"));
    },
  },
  tun("TUN, auto-redirect", "auto-redirect: true, auto-detect-interface: false"),
  tun("TUN, NAT, gso, MTU 1500", "auto-redirect: false, gso: true, mtu: 1500"),
  tun("TUN, NAT, no gso, MTU 9000", "auto-redirect: false, gso: false, mtu: 9000"),
  tun("TUN, NAT, no gso, MTU 1500", "auto-redirect: false, gso: false, mtu: 1500"),
];

interface Load {
  readonly title: string;
  readonly udp: boolean;
  readonly args: readonly string[];
}

/** WEIR_BENCH_LOADS: only those whose title holds it. */
const LOADS: readonly Load[] = [
  { title: "TCP up, 1 stream", udp: false, args: [] },
  { title: "TCP down, 1 stream", udp: false, args: ["-R"] },
  { title: "TCP up, 8 streams", udp: false, args: ["-P", "8"] },
  { title: "UDP up, 1,200 bytes, as fast as it goes", udp: true, args: ["-u", "-b", "0", "-l", "1200"] },
  {
    title: "UDP down, 1,200 bytes, as fast as it goes",
    udp: true,
    args: ["-R", "-u", "-b", "0", "-l", "1200"],
  },
].filter(({ title }) => title.includes(process.env["WEIR_BENCH_LOADS"] ?? ""));

interface Figure {
  readonly gbits: number;
  /** Of one core, for each Gbit/s. */
  readonly cpuPerGbit: number;
  /** Of weir alone. */
  readonly weirPerGbit: number;
}

interface Report {
  readonly end: {
    readonly sum_received?: { readonly bits_per_second: number };
    readonly sum?: { readonly bits_per_second: number; readonly lost_percent: number };
    readonly cpu_utilization_percent: { readonly host_total: number; readonly remote_total: number };
  };
}

const TICKS = 100;

function cpuSeconds(pid: number | null): number {
  if (pid === null) return 0;
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}

async function measure(row: Row, load: Load, pid: number | null): Promise<Figure> {
  const before = cpuSeconds(pid);
  const command = ["iperf3", "-J", "-c", ORIGIN[0], "-t", String(SECONDS), ...load.args];
  const [program, ...args] = [...row.client.prefix, ...command];
  const { stdout } = await exec(program as string, args, {
    maxBuffer: 1 << 26,
    timeout: (SECONDS + 20) * 1000,
  });
  const weir = (cpuSeconds(pid) - before) / SECONDS;
  const { end } = JSON.parse(stdout) as Report;
  const { host_total: host, remote_total: remote } = end.cpu_utilization_percent;
  const { sum_received: received, sum } = end;
  const bits = load.udp
    ? (sum?.bits_per_second ?? 0) * (1 - (sum?.lost_percent ?? 0) / 100)
    : (received?.bits_per_second ?? 0);
  const gbits = bits / 1e9;
  return { gbits, cpuPerGbit: ((host + remote) / 100 + weir) / gbits, weirPerGbit: weir / gbits };
}

async function tryOut(row: Row, subject: Subject): Promise<ReadonlyMap<string, Figure>> {
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
    if (!load.udp || subject.udp) figures.set(load.title, await measure(row, load, core?.pid ?? null));
  if (core !== null) await core.stop();
  return figures;
}

const TEAR_DOWN =
  "nft flush ruleset; for family in -4 -6; do ip $family rule del fwmark 1 2>/dev/null; ip $family route flush table 100 2>/dev/null; done; true";

export async function run(out: (line: string) => void): Promise<void> {
  const reason = skipNetns("transparent bench", "iperf3", "nft");
  if (reason !== false) return out(reason);
  await using row = await openRoutedRow("bench");
  row.origin.start("iperf3", "-s");
  const rounds: ReadonlyMap<string, ReadonlyMap<string, Figure>>[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const figures = new Map<string, ReadonlyMap<string, Figure>>();
    for (const subject of SUBJECTS) figures.set(subject.name, await tryOut(row, subject));
    rounds.push(figures);
  }
  for (const { title } of LOADS) {
    out(`\n${title}: medians of ${ROUNDS} rounds of ${SECONDS} s`);
    for (const { name } of SUBJECTS) {
      const all = rounds.flatMap((round) => {
        const figure = round.get(name)?.get(title);
        const plain = round.get("plain forwarding")?.get(title);
        return figure === undefined || plain === undefined ? [] : [{ figure, plain }];
      });
      if (all.length === 0) continue;
      const median = (of: (one: (typeof all)[number]) => number) =>
        all.map(of).toSorted((left, right) => left - right)[all.length >> 1] as number;
      out(
        [
          name.padEnd(28),
          `${median(({ figure }) => figure.gbits).toFixed(2)} Gbit/s`.padStart(14),
          `${median(({ figure, plain }) => figure.gbits / plain.gbits).toFixed(2)} × plain`.padStart(14),
          `CPU/Gbit ${median(({ figure }) => figure.cpuPerGbit).toFixed(3)}`,
          `(${median(({ figure, plain }) => figure.cpuPerGbit / plain.cpuPerGbit).toFixed(2)} × plain,`,
          `weir ${median(({ figure }) => figure.weirPerGbit).toFixed(3)})`,
        ].join(" "),
      );
    }
  }
}
