/**
 * What each protocol moves, from SOCKS5 through a client and a server to a sink: weir's client and server beside those of
 * the Debian package that speaks the same, in one interleaved run. Load and sink are processes of their own; all share the
 * machine, so ratios and CPU time (client and server together) say more than the absolute figures.
 */
import type { ChildProcess } from "node:child_process";
import { password } from "../test/support/interop/cells.ts";
import { weir } from "../test/support/interop/clash.ts";
import { shadowsocksLibev } from "../test/support/interop/debian.ts";
import { v2ray, xray } from "../test/support/interop/ray.ts";
import type { Speaker } from "../test/support/interop/speaker.ts";
import { missing } from "../test/support/peer.ts";
import {
  type Chain,
  measure,
  type Measured,
  median,
  type Side,
  side,
  startChain,
} from "./protocols-chain.ts";
import { costs } from "./protocols-costs.ts";
import { anytlsStream, bareStream } from "./protocols-floor.ts";
import type { Kind, ProtocolTask } from "./protocols-peer.ts";
import { endOf, forkPeer, forkServer } from "./relay-subjects.ts";

export const NAME = "protocols";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 3);
const BULK_MS = 1_500;
const SHORT_MS = 2_000;
const PARALLEL = 32;

const ours = weir("weir");
/** Its client moves everything in the event loop, TLS by node:tls. */
const portable = weir("weir", { relay: "portable" });

interface Comparison {
  readonly title: string;
  readonly kind: Kind;
  readonly our: Side;
  readonly other: Side;
  /** What is asked of the ratio; 0: nothing. */
  readonly target: number;
}

const against = (title: string, cell: string, speaker: Speaker, target: number): Comparison => ({
  title,
  kind: "D",
  our: side("weir", ours, cell),
  other: side(speaker.program === "ss-server" ? "shadowsocks-libev" : speaker.program, speaker, cell),
  target,
});

const dialled = (title: string, kind: Kind): Comparison => ({
  title,
  kind,
  our: side("weir", ours, "trojan tls"),
  other: side("a portable client", portable, "trojan tls"),
  target: 0,
});

/** Bulk in Vision over REALITY: beside TLS by libssl and no TLS at all, and beside Xray on both ends, where it is installed. */
function realityRows(dest: number): readonly Comparison[] {
  const vision = (name: string, speaker: Speaker): Side => ({
    ...side(name, speaker, "vless reality vision"),
    dest,
  });
  const our = vision("weir", ours);
  const plain = { title: "vision in reality, no TLS inside", kind: "D", our } as const;
  const switched = { title: "vision in reality after the switch", kind: "T", our } as const;
  const known: readonly Comparison[] = [
    { ...plain, other: side("weir's vless + TLS", ours, "vless tls"), target: 0.9 },
    { ...switched, other: side("weir's vless without TLS", ours, "vless bare"), target: 0.95 },
  ];
  if (missing("xray") !== false) return known;
  const other = vision("Xray", xray);
  return [...known, { ...plain, other, target: 1 }, { ...switched, other, target: 1 }];
}

const COMPARISONS: readonly Comparison[] = [
  against("vless + TLS", "vless tls plain udp", v2ray, 0.8),
  against("trojan + TLS", "trojan tls", v2ray, 0.8),
  against("shadowsocks aes-128-gcm", "ss aes-128-gcm", shadowsocksLibev, 0.7),
  against("shadowsocks chacha20-ietf-poly1305", "ss chacha20-ietf-poly1305", shadowsocksLibev, 0.7),
  against("vmess aes-128-gcm", "vmess aes-128-gcm", v2ray, 0),
  against("vless + ws + TLS", "vless ws plain udp", v2ray, 0),
  dialled("trojan + TLS dialled, down", "D"),
  dialled("trojan + TLS dialled, up", "U"),
  {
    title: "anytls",
    kind: "D",
    our: side("weir", ours, "anytls tls"),
    other: side("weir's vless + TLS", ours, "vless tls"),
    target: 0.8,
  },
  {
    title: "vision after the switch",
    kind: "T",
    our: side("weir", ours, "vless vision"),
    other: side("weir's vless without TLS", ours, "vless bare"),
    target: 0.9,
  },
];

/** One line a result. A ratio is the median over the rounds of ours against the other in the same round. */
export async function run(
  out: (line: string) => void,
  only = process.env["BENCH_ONLY"] ?? "",
): Promise<void> {
  const absent = missing("v2ray", "ss-server", "ss-local");
  if (absent !== false) return out(absent);
  const sink = await forkServer("./protocols-peer.ts", ["sink"]);
  const load = forkPeer("./protocols-peer.ts", ["load"]);
  const site = await forkServer("./reality-peer.ts", ["site", "X25519"]);
  try {
    out(
      `${ROUNDS} interleaved rounds; rate ratio and CPU ratio (other's CPU per GiB by ours: above 1 we spend less)`,
    );
    out(
      "| | streams | weir Gbit/s | other Gbit/s | rate ratio | CPU ratio | CPU | of the clients | asked |\n|---|---|---|---|---|---|---|---|---|",
    );
    for (const comparison of [...COMPARISONS, ...realityRows(site.port)])
      if (comparison.title.includes(only)) await compare(comparison, load, sink.port, out);
    await costs(load, sink.port, only, out);
    if ("short anytls streams".includes(only)) await shortStreams(load, sink.port, out);
  } finally {
    await endOf(load);
    await endOf(sink.child);
    await endOf(site.child);
  }
}

async function compare(
  { title, kind, our, other, target }: Comparison,
  load: ChildProcess,
  sinkPort: number,
  out: (line: string) => void,
): Promise<void> {
  await using first = await startChain(our);
  await using second = await startChain(other);
  for (const streams of [1, 8]) {
    const rounds: (readonly [Measured, Measured])[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const task = (chain: Chain): ProtocolTask => ({
        what: "bulk",
        kind,
        streams,
        socksPort: chain.socksPort,
        sinkPort,
        ms: BULK_MS,
      });
      const one = await measure(load, first, task(first), 2 ** 30);
      const two = await measure(load, second, task(second), 2 ** 30);
      rounds.push([one, two]);
    }
    const gbit = (index: 0 | 1): string =>
      (median(rounds.map((round) => round[index].rate)) * 8.59).toFixed(2);
    const ratio = median(rounds.map(([one, two]) => one.rate / two.rate)).toFixed(2);
    const cpu = median(rounds.map(([one, two]) => two.cpuPerUnit / one.cpuPerUnit)).toFixed(2);
    const client = (index: 0 | 1): number =>
      median(rounds.map(({ [index]: one }) => one.cpuPerUnit - one.serverCpuPerUnit));
    const clients = `${client(0).toFixed(2)} and ${client(1).toFixed(2)} s/GiB`;
    const all = [0, 1].map((index) =>
      median(rounds.map((round) => round[index as 0 | 1].cpuPerUnit)).toFixed(2),
    );
    const asked = target === 0 ? "–" : `≥ ${target}`;
    out(
      `| ${title} by ${other.name} | ${streams} | ${gbit(0)} | ${gbit(1)} | ${ratio} | ${cpu} | ${all.join(" and ")} s/GiB | ${clients} | ${asked} |`,
    );
  }
}

async function shortStreams(
  load: ChildProcess,
  sinkPort: number,
  out: (line: string) => void,
): Promise<void> {
  await using chain = await startChain(side("weir", ours, "anytls tls"));
  const rounds: Measured[] = [];
  const [alone, bare]: [number[], number[]] = [[], []];
  const { socksPort } = chain;
  const place = { pid: chain.pids[0] as number, port: chain.port, password };
  const amount = { parallel: PARALLEL, ms: SHORT_MS };
  for (let round = 0; round < ROUNDS; round++) {
    const task = { what: "short", socksPort, sinkPort, ...amount } as const;
    rounds.push(await measure(load, chain, task, 1));
    alone.push(await anytlsStream(place, sinkPort, amount));
    bare.push(await bareStream(sinkPort, amount));
  }
  const rate = Math.round(median(rounds.map((one) => one.rate)));
  const perCore = (cost: number): number => Math.round(1 / cost);
  const both = perCore(median(rounds.map((one) => one.cpuPerUnit)));
  const server = perCore(median(rounds.map((one) => one.serverCpuPerUnit)));
  out(
    `\nshort anytls streams: ${rate}/s; by CPU time ${server}/s a core of the server, ${both}/s a core for client (with SOCKS5) and server together (asked: 5000); straight at the server ${perCore(median(alone))}/s a core, at a bare TLS server with the same reads and writes: ${perCore(median(bare))}/s a core`,
  );
}
