/**
 * kernel-direct: what bypassed traffic loses against plain forwarding, by each backend; what the classifier costs a packet;
 * how long the kernel's set takes to change. Namespaces of one machine: figures are ratios within one round.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { frame } from "../test/support/frames.ts";
import { openTransit, startStandIn, type Transit } from "../test/support/transit.ts";
import { skipNetns } from "../test/support/netns.ts";
import { startCore } from "../test/support/start-core.ts";
import { Bpf } from "#platform/linux/bpf.ts";
import { openLibc } from "#platform/linux/libc.ts";
import { Maps } from "#kernel-direct/ebpf/maps.ts";
import { classifierProgram, DECISION } from "#kernel-direct/ebpf/program.ts";
import { ffiFor } from "#platform/ffi.ts";

export const NAME = "kernel-direct";

const exec = promisify(execFile);
const ROUNDS = Number(process.env["WEIR_BENCH_ROUNDS"] ?? 3);
const SECONDS = Number(process.env["WEIR_BENCH_SECONDS"] ?? 3);
const FAR = "192.0.2.10";
const REPEAT = 1_000_000;

const CLASSIFIER =
  "kernel-direct-ebpf: true, kernel-direct-ebpf-interfaces: [down0], kernel-direct-ebpf-required: true";
const SUBJECTS: readonly { readonly name: string; readonly tun: string }[] = [
  { name: "nftables", tun: "" },
  { name: "classifier, DIRECT mark", tun: CLASSIFIER },
  { name: "classifier, both marks", tun: `${CLASSIFIER}, kernel-direct-ebpf-proxy: true` },
  {
    name: "classifier, redirect",
    tun: `${CLASSIFIER}, kernel-direct-ebpf-proxy: true, kernel-direct-ebpf-proxy-redirect: true`,
  },
];

const config = (tun: string) => `
log-level: info
dns: { enable: true, enhanced-mode: redir-host, nameserver: ["192.0.2.2"] }
hosts: { far.test: ${FAR} }
tun: { enable: true, auto-route: true, auto-redirect: true, auto-detect-interface: false, kernel-direct: true, ${tun} }
rules: ["MATCH,DIRECT"]
`;

export async function run(out: (line: string) => void): Promise<void> {
  const reason = skipNetns("bench kernel-direct", "iperf3", "dig", "nft");
  if (reason !== false) return out(reason);
  await costPerPacket(out);
  await setTimes(out);
  await throughput(out);
}

async function throughput(out: (line: string) => void): Promise<void> {
  await using row = await openTransit("bench-bypass");
  await row.origin.ip(`address add ${FAR}/32 dev lo`);
  const server = [...row.origin.prefix, "iperf3", "-s"];
  const child = spawn(server[0] as string, server.slice(1), { stdio: "ignore" });
  try {
    const figures = new Map(
      SUBJECTS.map(({ name }) => [name, { gbits: [] as number[], ratios: [] as number[] }]),
    );
    for (let round = 0; round < ROUNDS; round++)
      for (const { name, tun } of SUBJECTS) {
        // Plain forwarding right before and right after, because the machine has moods.
        const before = await iperf(row);
        const gbits = await bypassed(row, tun);
        const after = await iperf(row);
        figures.get(name)?.gbits.push(gbits);
        figures.get(name)?.ratios.push((2 * gbits) / (before + after));
      }
    for (const [name, { gbits, ratios }] of figures)
      out(`${name}: ${median(gbits).toFixed(2)} Gbit/s, ${median(ratios).toFixed(3)} of plain forwarding`);
  } finally {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
}

async function bypassed(row: Transit, tun: string): Promise<number> {
  await using core = await startCore(config(tun), { prefix: row.router.prefix });
  await row.client.run("dig", "+short", "@203.0.113.1", "far.test");
  const gbits = await iperf(row);
  await core.stop();
  return gbits;
}

async function iperf({ client: { prefix } }: Transit): Promise<number> {
  const [program, ...args] = [...prefix, "iperf3", "-J", "-c", FAR, "-t", String(SECONDS)];
  const { stdout } = await exec(program as string, args, {
    maxBuffer: 1 << 26,
    timeout: (SECONDS + 20) * 1000,
  });
  const { end } = JSON.parse(stdout) as { end: { sum_received: { bits_per_second: number } } };
  return end.sum_received.bits_per_second / 1e9;
}

async function setTimes(out: (line: string) => void): Promise<void> {
  await using row = await openTransit("bench-set");
  await using standIn = await startStandIn(row.router, { options: { kernelDirect: true }, hijackDns: true });
  const address = (at: number) => `9.${at >> 16}.${(at >> 8) & 255}.${at & 255}`;
  const all = Array.from({ length: 65_536 }, (_, at) => address(at)).join(" ");
  const timed = async (command: string): Promise<number> => {
    const startMs = performance.now();
    await standIn.tell(command);
    return performance.now() - startMs;
  };
  const resyncs = [];
  for (let round = 0; round < 5; round++) resyncs.push(await timed(`replace ${all}`));
  const singles = [];
  for (let at = 0; at < 200; at++) singles.push(await timed(`add 11.0.0.${at}`));
  const gone = [];
  for (let at = 0; at < 200; at++) gone.push(await timed(`delete 11.0.0.${at}`));
  const figures = (all: readonly number[]) =>
    `${median(all).toFixed(2)} ms, worst ${Math.max(...all).toFixed(2)} ms`;
  out(
    `nftables, 65,536 addresses: resync ${figures(resyncs)}; one more ${figures(singles)}; one less ${figures(gone)}`,
  );
}

/** What a run of the program takes, as the kernel measures it, without the packet's way to it. */
async function costPerPacket(out: (line: string) => void): Promise<void> {
  const libc = openLibc();
  if (libc === null) return;
  const bpf = new Bpf(ffiFor("this measurement"), libc);
  using maps = new Maps(bpf, { prefixes: 65_536, flows: 65_536, ways: null }, 1024);
  const marks = { directMark: 0x4000_0000, proxyMark: 0x2000_0000, redirectTo: null };
  const program = bpf.loadClassifier(classifierProgram({ maps: maps.descriptors, ...marks }), "weir_bench");
  maps.change(
    new Map(
      Array.from({ length: 60_000 }, (_, at) => [`9.9.${at >> 8}.${at & 255}/32`, DECISION.direct] as const),
    ),
  );
  const cost = (to: string) => bpf.testRun(program, frame({ to }), new Uint8Array(192), REPEAT).nanoseconds;
  out(
    `classifier, 60,000 prefixes: ${cost("9.9.9.9")} ns a packet with a cached flow, ${cost("8.8.8.8")} ns without a prefix`,
  );
  bpf.close(program);
}

function median(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[all.length >> 1] as number;
}
