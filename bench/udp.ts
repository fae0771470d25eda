/** Datagrams of 1,200 bytes through a SOCKS5 association, beside v2ray and no proxy in the same interleaved run. */
import { once } from "node:events";
import { cpuSeconds, endOf, forkPeer, noProxy, v2ray, weir, type Subject } from "./relay-subjects.ts";
import type { UdpTask } from "./udp-peer.ts";

export const NAME = "udp";

const ROUNDS = 3;
const MS = 2_000;
const BYTES = 1_200;

export async function run(out: (line: string) => void): Promise<void> {
  const sink = await forkPeer("./udp-peer.ts", ["sink"]);
  const { child: load } = await forkPeer("./udp-peer.ts", ["load"]);
  await using opened = new AsyncDisposableStack();
  opened.defer(() => endOf(sink.child));
  opened.defer(() => endOf(load));
  const rows = new Map<Subject, { rate: number; cpu: number }[]>();
  for (const open of [noProxy, weir, v2ray]) {
    const subject = await open(sink.port);
    if (subject === null) out("SKIP udp v2ray: it is not on the PATH (Debian package v2ray)");
    else rows.set(opened.use(subject), []);
  }
  for (let round = 0; round < ROUNDS; round++)
    for (const [subject, of] of rows) {
      const before = cpuSeconds(subject.pid);
      const task: UdpTask = {
        socksPort: subject.socksPort,
        sinkPort: sink.port,
        bytes: BYTES,
        ms: MS,
      };
      load.send(task);
      const [rate] = (await once(load, "message")) as [number];
      of.push({ rate, cpu: ((cpuSeconds(subject.pid) - before) * 1e6) / ((rate * (MS + 300)) / 1_000) });
    }
  for (const [{ name, pid }, of] of rows) {
    const { rate, cpu } = of.sort((a, b) => a.rate - b.rate)[of.length >> 1] as { rate: number; cpu: number };
    const cost = pid === null ? "" : `, CPU µs each ${cpu.toFixed(1)}`;
    out(`${BYTES} bytes by SOCKS5: ${name}: per second ${rate.toFixed(0)}${cost}`);
  }
}

if (import.meta.main) await run((line) => console.log(line));
