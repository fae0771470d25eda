/**
 * Datagrams of 1,200 bytes, both ways: through a SOCKS5 association, beside a bare relay by node:dgram, v2ray and no proxy,
 * then what is lost at half of the wanted rate; and between namespaces through a router, which forwards, has tproxy, or a
 * TUN. Runs of one place are interleaved. The ends send and receive datagram by datagram (WEIR_BENCH_RUNS=1: in runs, as
 * QUIC programs do). WEIR_BENCH_SECONDS: how long the loss is counted, 30 for the record; WEIR_BENCH_ROUNDS: how often the rest.
 */
import { once } from "node:events";
import type { Ip } from "#core/session.ts";
import { openRoutedRow } from "../test/support/netns-far-away.ts";
import { manual, ORIGIN } from "../test/support/netns-row.ts";
import { skipNetns } from "../test/support/netns.ts";
import { startCore } from "../test/support/start-core.ts";
import {
  cpuSeconds,
  endOf,
  forkPeer,
  forkServer,
  noProxy,
  v2ray,
  weir,
  type Subject,
} from "./relay-subjects.ts";
import type { UdpResult, UdpTask } from "./udp-peer.ts";

export const NAME = "udp";

export const ROUNDS = Number(process.env["WEIR_BENCH_ROUNDS"] ?? 3);
export const MS = 2_000;
export const BYTES = 1_200;
const HALF_RATE = 75_000;
export const LOSS_MS = Number(process.env["WEIR_BENCH_SECONDS"] ?? 5) * 1_000;
const ENDS = process.env["WEIR_BENCH_RUNS"] === "1" ? "runs" : "plain";

export interface Figure {
  readonly rate: number;
  readonly cpuMicros: number;
  readonly lost: number;
  readonly sent: number;
}

async function bareRelay(): Promise<Subject> {
  const { child, port } = await forkServer("./udp-bare.ts");
  const pid = child.pid as number;
  return {
    name: "bare node:dgram",
    port: 0,
    asked: { socks: port },
    pid,
    [Symbol.asyncDispose]: () => endOf(child),
  };
}

type Way = Pick<Subject, "name" | "asked" | "pid">;
type Order = Omit<UdpTask, "socksPort" | "far">;

export interface Ends extends AsyncDisposable {
  readonly farPort: number;
  measure(way: Way, order: Order): Promise<Figure>;
}

/** Both ends, each where its prefix puts it. */
export async function openEnds(
  hosts: readonly [near: string, far: string],
  prefixes: Prefixes = [],
): Promise<Ends> {
  await using undo = new AsyncDisposableStack();
  const [near, far] = hosts;
  const { child: source, port } = await forkServer("./udp-peer.ts", ["far", far, ENDS], prefixes[1]);
  undo.defer(() => endOf(source));
  const load = forkPeer("./udp-peer.ts", ["load", near, ENDS], prefixes[0]);
  undo.defer(() => endOf(load));
  const owned = undo.move();
  return {
    farPort: port,
    async measure({ asked: { socks: socksPort = null }, pid }, order) {
      const before = cpuSeconds(pid);
      const told = once(order.direction === "up" ? load : source, "message");
      load.send({ ...order, socksPort, far: { ip: far as Ip, port } } satisfies UdpTask);
      const [{ sent, received, rate }] = (await told) as [UdpResult];
      if (order.direction === "down") load.send("over");
      const cpuMicros = ((cpuSeconds(pid) - before) * 1e6) / received;
      return { rate, cpuMicros, lost: sent - received, sent };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

type Prefixes = readonly (readonly string[])[];
export const WAYS = ["up", "down"] as const;

export async function run(out: (line: string) => void): Promise<void> {
  await bySocks(out);
  const reason = skipNetns("udp bench", "nft");
  if (reason === false) await captured(out);
  else out(reason);
}

async function bySocks(out: (line: string) => void): Promise<void> {
  await using ends = await openEnds(["127.0.0.1", "127.0.0.1"]);
  await using opened = new AsyncDisposableStack();
  const subjects: Subject[] = [];
  for (const open of [noProxy, weir, bareRelay, v2ray]) {
    const subject = await open(ends.farPort);
    if (subject === null) out("SKIP udp v2ray: it is not on the PATH (Debian package v2ray)");
    else subjects.push(opened.use(subject));
  }
  await compare(out, "by SOCKS5", ends, subjects);
  for (const direction of WAYS)
    for (const subject of subjects) {
      const order = { direction, bytes: BYTES, ms: LOSS_MS, perSecond: HALF_RATE };
      const figure = await ends.measure(subject, order);
      const { lost, sent } = figure;
      const title = `${HALF_RATE} a second for ${LOSS_MS / 1_000} s, ${direction}: ${subject.name}`;
      out(`${title}: lost ${lost} of ${sent}${costOf(figure)}`);
    }
}

const REST = `rules: ["MATCH,DIRECT"]`;
const TPROXY = `tproxy-port: 7893\nallow-lan: true\nrouting-mark: 6666\ninterface-name: up0\n${REST}`;
const TUN = `tun: { enable: true, device: weir-tun0, stack: system, auto-route: true, auto-redirect: true, auto-detect-interface: false }\n${REST}`;

/** One way after the other, as each needs the router for itself. */
async function captured(out: (line: string) => void): Promise<void> {
  await using row = await openRoutedRow("udp");
  const { client, router, origin } = row;
  await using ends = await openEnds(["203.0.113.2", ORIGIN[0]], [client.prefix, origin.prefix]);
  await compare(out, "through a router", ends, [{ name: "plain forwarding", asked: {}, pid: null }]);
  await using tun = await startCore(TUN, { prefix: router.prefix });
  await compare(out, "through a router", ends, [{ name: "weir, TUN", asked: {}, pid: tun.pid }]);
  await tun.stop();
  const routes = manual("tproxy", "sh").trimEnd().split("\n");
  await router.ip(...routes.map((line) => line.replace(/^ip /, "")));
  await router.nft(manual("tproxy", "nft"));
  await using tproxy = await startCore(TPROXY, { prefix: router.prefix });
  await compare(out, "through a router", ends, [{ name: "weir, tproxy", asked: {}, pid: tproxy.pid }]);
}

async function compare(out: (line: string) => void, place: string, ends: Ends, ways: readonly Way[]) {
  const figures = new Map<string, Figure[]>();
  for (let round = 0; round < ROUNDS; round++)
    for (const direction of WAYS)
      for (const way of ways) {
        const figure = await ends.measure(way, { direction, bytes: BYTES, ms: MS, perSecond: null });
        const key = `${direction}: ${way.name}`;
        figures.set(key, [...(figures.get(key) ?? []), figure]);
      }
  for (const [key, of] of figures) {
    const median = of.sort((a, b) => a.rate - b.rate)[of.length >> 1] as Figure;
    out(`${BYTES} bytes ${place}, ${key}: per second ${median.rate.toFixed(0)}${costOf(median)}`);
  }
}

function costOf({ cpuMicros }: Figure): string {
  return cpuMicros === 0 ? "" : `, CPU µs each ${cpuMicros.toFixed(2)}`;
}

if (import.meta.main) await run((line) => console.log(line));
