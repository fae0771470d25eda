/**
 * What each way of a protocol costs, client and server together: CPU seconds a GiB down, up, up to a far side that says
 * nothing, and of TLS inside Vision, and CPU milliseconds a connection; rates beside them. Beside weir every program that
 * is installed and speaks it on both ends (v2ray, Xray, sing-box, mihomo, shadowsocks-libev), and another checkout of weir
 * (BENCH_OTHER), in interleaved rounds.
 */
import type { ChildProcess } from "node:child_process";
import { type Cell, CELLS } from "../test/support/interop/cells.ts";
import { mihomo, weir } from "../test/support/interop/clash.ts";
import { shadowsocksLibev } from "../test/support/interop/debian.ts";
import { v2ray, xray } from "../test/support/interop/ray.ts";
import { openDest } from "../test/support/interop/reality.ts";
import { singBox } from "../test/support/interop/sing-box.ts";
import type { Speaker } from "../test/support/interop/speaker.ts";
import { missing } from "../test/support/peer.ts";
import {
  type Chain,
  type Measured,
  measure,
  median,
  type Side,
  side,
  startChain,
} from "./protocols-chain.ts";
import type { Kind } from "./protocols-peer.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 3);
/** The first ones of these do not count: programs that have just started compile their code in them. */
const WARM_ROUNDS = Number(process.env["BENCH_WARM_ROUNDS"] ?? 0);
const BULK_MS = 1_200;
const SHORT_MS = 1_500;
const PARALLEL = 32;
const STREAMS = (process.env["BENCH_STREAMS"] ?? "1").split(",").map(Number);
const KINDS = (process.env["BENCH_KINDS"] ?? "DUST").split("") as readonly Kind[];
const PEERS = [v2ray, xray, singBox, mihomo, shadowsocksLibev].filter(
  ({ program }) => missing(program) === false,
);
const NAMES = { D: "down", U: "up", S: "up, silent far side", T: "TLS down" };

const OURS = [
  "vless bare",
  "vless tls",
  "vless vision",
  "vless ws",
  "vless httpupgrade",
  "vless encryption in tls",
  "vless encryption in ws",
  "vless grpc",
  "vless xhttp stream-one",
  "vless xhttp stream-up",
  "vless xhttp packet-up",
  "vless reality",
  "vless reality ML-KEM",
  "vless reality grpc",
  "vless reality xhttp",
  "trojan tls",
  "trojan smux",
  "vmess aes-128-gcm",
  "vmess chacha20-poly1305",
  "vmess ws",
  "ss aes-128-gcm",
  "ss 2022-blake3-aes-128-gcm",
  "ss v2ray-plugin without mux",
  "anytls tls",
];

/**
 * One line a cell and kind. Of each side the median cost, its least and most in brackets, and the median rate; then ours by
 * the best of the programs that are not weir, in cost and in rate.
 */
export async function costs(
  load: ChildProcess,
  sinkPort: number,
  only: string,
  out: (line: string) => void,
): Promise<void> {
  const wanted = OURS.filter((cell) => `costs of ${cell}`.includes(only));
  if (wanted.length > 0)
    out(
      "\nCPU s/GiB of client and server at Gbit/s, or ms a connection at connections/s\n\n| | streams | | cost × best | rate × best |\n|---|---|---|---|---|",
    );
  for (const cell of wanted) {
    await using chains = new AsyncDisposableStack();
    const sides: [Side, Chain][] = [];
    const { reality = null } = CELLS.find(({ name }) => name === cell) ?? {};
    const dest = reality === null ? 0 : chains.use(await openDest(reality)).port;
    for (const side of sidesOf(cell)) {
      const one = { ...side, dest };
      sides.push([one, chains.use(await startChain(one))]);
    }
    for (const kind of KINDS.filter((one) => one !== "T" || cell.includes("vision")))
      for (const streams of STREAMS)
        out(`| ${cell} ${NAMES[kind]} | ${streams} | ${await bulk(load, sides, kind, streams, sinkPort)} |`);
    out(`| ${cell} short | ${PARALLEL} | ${await short(load, sides, sinkPort)} |`);
  }
}

function sidesOf(name: string): readonly Side[] {
  const other = process.env["BENCH_OTHER"];
  const cell = CELLS.find((one) => one.name === name);
  if (cell === undefined) throw new RangeError(`${name} is no cell of the matrix`);
  const ours = speakerFor(cell);
  const speaks = PEERS.filter((peer) => peer.server(cell, 1) !== null && peer.client(cell, 1, 2) !== null);
  return [
    side("weir", ours, name),
    ...(other === undefined ? [] : [{ ...side("other weir", ours, name), root: other }]),
    ...speaks.map((peer) => side(peer.program, peer, name)),
  ];
}

/** Where weir has no such listener it stands beside shadowsocks-libev's, whose plugin is a program that is not counted. */
function speakerFor(cell: Cell): Speaker {
  const ours = weir("weir");
  return ours.server(cell, 1) === null ? { ...ours, server: shadowsocksLibev.server } : ours;
}

function bulk(
  load: ChildProcess,
  sides: readonly [Side, Chain][],
  kind: Kind,
  streams: number,
  sinkPort: number,
): Promise<string> {
  return rounds(sides, async (chain) => {
    const { socksPort } = chain;
    const task = { what: "bulk", kind, streams, socksPort, sinkPort, ms: BULK_MS } as const;
    const one = await measure(load, chain, task, 2 ** 30);
    return { ...one, rate: one.rate * 8.59 };
  });
}

function short(load: ChildProcess, sides: readonly [Side, Chain][], sinkPort: number): Promise<string> {
  return rounds(sides, async (chain) => {
    const { socksPort } = chain;
    const task = { what: "short", parallel: PARALLEL, socksPort, sinkPort, ms: SHORT_MS } as const;
    const one = await measure(load, chain, task, 1);
    return {
      ...one,
      cpuPerUnit: one.cpuPerUnit * 1000,
      serverCpuPerUnit: one.serverCpuPerUnit * 1000,
    };
  });
}

async function rounds(
  sides: readonly [Side, Chain][],
  once: (chain: Chain) => Promise<Measured>,
): Promise<string> {
  const results = sides.map((): Measured[] => []);
  for (let round = 0; round < ROUNDS; round++)
    for (const [index, [, chain]] of sides.entries()) {
      const measured = await once(chain);
      if (round >= WARM_ROUNDS) results[index]?.push(measured);
    }
  const rows = sides.map(([{ name }], index) => {
    const own = results[index] ?? [];
    const costs = own.map(({ cpuPerUnit }) => cpuPerUnit);
    const server = median(own.map(({ serverCpuPerUnit }) => serverCpuPerUnit));
    return { name, costs, server, cost: median(costs), rate: median(own.map(({ rate }) => rate)) };
  });
  const text = rows.map(({ name, costs, server, cost, rate }) => {
    const range = `${Math.min(...costs).toFixed(2)}–${Math.max(...costs).toFixed(2)}`;
    return `${name} ${cost.toFixed(2)} (${range}; server ${server.toFixed(2)}) at ${rate.toFixed(rate < 100 ? 2 : 0)}`;
  });
  return `${text.join(", ")} | ${besideBest(rows)}`;
}

interface Row {
  readonly name: string;
  readonly cost: number;
  readonly rate: number;
}

function besideBest([ours, ...others]: readonly Row[]): string {
  const peers = others.filter(({ name }) => name !== "other weir");
  if (ours === undefined || peers.length === 0) return "– | –";
  const cost = ours.cost / Math.min(...peers.map((peer) => peer.cost));
  const rate = ours.rate / Math.max(...peers.map((peer) => peer.rate));
  return `${cost.toFixed(2)} | ${rate.toFixed(2)}`;
}
