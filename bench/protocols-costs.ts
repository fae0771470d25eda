/**
 * What each way of a protocol costs, client and server together: CPU seconds a GiB down, up, and up to a far side that
 * says nothing, and CPU milliseconds a connection. Beside weir what is installed, and another checkout of it
 * (BENCH_OTHER), in interleaved rounds.
 */
import type { ChildProcess } from "node:child_process";
import { CELLS } from "../test/support/interop/cells.ts";
import { weir } from "../test/support/interop/clash.ts";
import { shadowsocksLibev } from "../test/support/interop/debian.ts";
import { v2ray } from "../test/support/interop/ray.ts";
import type { Speaker } from "../test/support/interop/speaker.ts";
import { type Chain, measure, median, type Side, side, startChain } from "./protocols-chain.ts";
import type { Kind } from "./protocols-peer.ts";

const ROUNDS = Number(process.env["BENCH_ROUNDS"] ?? 3);
const BULK_MS = 1_200;
const SHORT_MS = 1_500;
const PARALLEL = 32;
const STREAMS = (process.env["BENCH_STREAMS"] ?? "1").split(",").map(Number);
const KINDS: readonly Kind[] = ["D", "U", "S"];
const NAMES = { D: "down", U: "up", S: "up, silent far side", T: "TLS down" };

const OURS = [
  "vless bare",
  "vless tls",
  "vless vision",
  "vless ws",
  "vless httpupgrade",
  "vless grpc",
  "trojan tls",
  "trojan smux",
  "vmess aes-128-gcm",
  "vmess chacha20-poly1305",
  "ss aes-128-gcm",
  "ss 2022-blake3-aes-128-gcm",
  "anytls tls",
];

/** One line a cell and kind: for each side the median, and its least and most in brackets. */
export async function costs(
  load: ChildProcess,
  sinkPort: number,
  only: string,
  out: (line: string) => void,
): Promise<void> {
  const wanted = OURS.filter((cell) => `costs of ${cell}`.includes(only));
  if (wanted.length > 0)
    out("\nCPU s/GiB of client and server, or ms a connection\n\n| | streams | |\n|---|---|---|");
  for (const cell of wanted) {
    await using chains = new AsyncDisposableStack();
    const sides: [Side, Chain][] = [];
    for (const one of sidesOf(cell)) sides.push([one, chains.use(await startChain(one))]);
    for (const kind of KINDS)
      for (const streams of STREAMS)
        out(`| ${cell} ${NAMES[kind]} | ${streams} | ${await bulk(load, sides, kind, streams, sinkPort)} |`);
    out(`| ${cell} short | ${PARALLEL} | ${await short(load, sides, sinkPort)} |`);
  }
}

function sidesOf(cell: string): readonly Side[] {
  const ours = weir("weir");
  const other = process.env["BENCH_OTHER"];
  const found = CELLS.find(({ name }) => name === cell);
  const peers: readonly Speaker[] = found === undefined ? [] : [v2ray, shadowsocksLibev];
  const sides = [side("weir", ours, cell)];
  if (other !== undefined) sides.push({ ...side("other weir", ours, cell), root: other });
  for (const peer of peers)
    if (found !== undefined && peer.server(found, 1) !== null && peer.client(found, 1, 2) !== null)
      sides.push(side(peer.program, peer, cell));
  return sides;
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
    return (await measure(load, chain, task, 2 ** 30)).cpuPerUnit;
  });
}

function short(load: ChildProcess, sides: readonly [Side, Chain][], sinkPort: number): Promise<string> {
  return rounds(sides, async (chain) => {
    const { socksPort } = chain;
    const task = { what: "short", parallel: PARALLEL, socksPort, sinkPort, ms: SHORT_MS } as const;
    return (await measure(load, chain, task, 1)).cpuPerUnit * 1000;
  });
}

async function rounds(
  sides: readonly [Side, Chain][],
  once: (chain: Chain) => Promise<number>,
): Promise<string> {
  const values = sides.map((): number[] => []);
  for (let round = 0; round < ROUNDS; round++)
    for (const [index, [, chain]] of sides.entries()) values[index]?.push(await once(chain));
  const text = sides.map(([{ name }], index) => {
    const own = values[index] ?? [];
    return `${name} ${median(own).toFixed(2)} (${Math.min(...own).toFixed(2)}–${Math.max(...own).toFixed(2)})`;
  });
  return text.join(", ");
}
