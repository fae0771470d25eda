/**
 * Datagrams of 1,200 bytes through hysteria2, both ways: a SOCKS5 association, the client, the server, the far end, all on
 * this machine. First as many as go, then what is lost at half of the wanted rate. WEIR_BENCH_SECONDS: how long that is
 * counted, 30 for the record; WEIR_BENCH_ROUNDS: how often the rest; WEIR_BENCH_RUNS=1: the ends send in runs.
 */
import { loadavg } from "node:os";
import { openPairs, type Pair } from "./hysteria2-sides.ts";
import { cpuSeconds } from "./relay-subjects.ts";
import { BYTES, type Ends, LOSS_MS, MS, openEnds, ROUNDS, WAYS } from "./udp.ts";

export const NAME = "quic-udp";

const HALF_RATE = 50_000;
type Way = (typeof WAYS)[number];

interface Row {
  readonly rate: number;
  /** CPU µs of each datagram that has arrived. */
  readonly client: number;
  readonly server: number;
  readonly sent: number;
  readonly lost: number;
}

async function measure(
  ends: Ends,
  pair: Pair,
  order: { readonly direction: Way; readonly ms: number; readonly perSecond: number | null },
): Promise<Row> {
  const pids = [pair.client.pid, pair.server.pid] as const;
  const before = pids.map(cpuSeconds);
  const way = { name: pair.title, asked: { socks: pair.client.port }, pid: null };
  const { rate, sent, lost } = await ends.measure(way, { ...order, bytes: BYTES });
  const [client = 0, server = 0] = pids.map(
    (pid, at) => ((cpuSeconds(pid) - (before[at] ?? 0)) * 1e6) / (sent - lost),
  );
  return { rate, client, server, sent, lost };
}

function show(out: (line: string) => void, title: string, { rate, client, server, sent, lost }: Row): void {
  const load = (loadavg()[0] ?? 0).toFixed(1);
  const costs = `${client.toFixed(2)} | ${server.toFixed(2)}`;
  out(`| ${title} | ${rate.toFixed(0)} | ${lost} of ${sent} | ${costs} | ${load} |`);
}

export async function run(
  out: (line: string) => void,
  only = process.env["BENCH_ONLY"] ?? "",
): Promise<void> {
  await using undo = new AsyncDisposableStack();
  const ends = undo.use(await openEnds(["127.0.0.1", "127.0.0.1"]));
  const pairs = (await openPairs(undo, out)).filter(({ title }) => title.includes(only));
  out(
    "| | arrived a second | lost | client, CPU µs each | server, CPU µs each | load |\n|---|---|---|---|---|---|",
  );
  for (const direction of WAYS) {
    const all = pairs.map((): Row[] => []);
    for (let round = 0; round < ROUNDS; round++)
      for (const [at, pair] of pairs.entries())
        all[at]?.push(await measure(ends, pair, { direction, ms: MS, perSecond: null }));
    for (const [at, { title }] of pairs.entries()) {
      const middle = all[at]?.toSorted((a, b) => a.rate - b.rate)[ROUNDS >> 1];
      if (middle !== undefined) show(out, `${title}, ${direction}, all that goes`, middle);
    }
  }
  for (const direction of WAYS)
    for (const pair of pairs) {
      const row = await measure(ends, pair, { direction, ms: LOSS_MS, perSecond: HALF_RATE });
      show(out, `${pair.title}, ${direction}, ${HALF_RATE} a second for ${LOSS_MS / 1_000} s`, row);
    }
}

if (import.meta.main) await run((line) => console.log(line));
