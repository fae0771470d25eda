/**
 * Datagrams above a limit: what arrives against the limit from the first one on, its fullest 100 ms, the shares of the
 * senders, and how long a datagram takes. None may wait: the times stand beside those without a limit.
 */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { loadavg } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { openSocksUdp } from "../../test/support/socks-udp.ts";
import { startLimited } from "./flows.ts";
import { jain, Receiver } from "./receiver.ts";

const SIZE_BYTES = 1200;
const OFFERED = 1.5;

export interface DatagramResult {
  readonly bitsPerSecond: number;
  readonly arrivedPeak: number;
  readonly jain: number;
  /** Of all that were sent. */
  readonly dropped: number;
  readonly medianMs: number;
  readonly mostMs: number;
}

/** Each sender sends its part of `OFFERED` times `bitsPerSecond`; `limited` false: without the limit. */
async function measureDatagrams(
  bitsPerSecond: number,
  senders: number,
  spanMs: number,
  limited = true,
): Promise<DatagramResult> {
  const limit = limited ? `, upload-bps: ${bitsPerSecond}` : "";
  await using core = await startLimited(`  enabled: true\n  global: { id: all${limit} }`);
  const sink = createSocket({ type: "udp4", recvBufferSize: 4 << 20 });
  sink.bind(0, "127.0.0.1");
  await once(sink, "listening");
  const all = new Receiver(spanMs);
  const shares = Array.from({ length: senders }, () => 0);
  const delays: number[] = [];
  sink.on("message", (payload) => {
    all.add(payload.length);
    const sender = payload.readUInt32BE(8);
    shares[sender] = (shares[sender] as number) + 1;
    delays.push(performance.now() - payload.readDoubleBE(0));
  });
  using opened = new DisposableStack();
  const sockets: { readonly socket: Socket; readonly port: number; readonly datagram: Buffer }[] = [];
  for (let sender = 0; sender < senders; sender++) {
    const relay = opened.use(await openSocksUdp(core.mixed, "127.0.0.1"));
    const socket = createSocket("udp4");
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    opened.defer(() => socket.close());
    const { port } = sink.address();
    const head = Buffer.of(0, 0, 0, 1, 127, 0, 0, 1, port >> 8, port & 0xff);
    const datagram = Buffer.concat([head, Buffer.alloc(SIZE_BYTES)]);
    datagram.writeUInt32BE(sender, head.length + 8);
    sockets.push({ socket, port: relay.port, datagram });
  }
  const perMs = (bitsPerSecond * OFFERED) / 8000 / SIZE_BYTES;
  const startedMs = performance.now();
  let sent = 0;
  for (let nowMs = startedMs; nowMs < startedMs + spanMs + 200; nowMs = performance.now()) {
    for (; sent < (nowMs - startedMs) * perMs; sent++) {
      const { socket, port, datagram } = sockets[sent % senders] as (typeof sockets)[number];
      const copy = Buffer.from(datagram);
      copy.writeDoubleBE(performance.now(), 10);
      socket.send(copy, port, "127.0.0.1");
    }
    await delay(1);
  }
  await delay(200); // those on their way
  sink.close();
  delays.sort((a, b) => a - b);
  return {
    bitsPerSecond: all.bitsPerSecond,
    arrivedPeak: all.peakBitsPerSecond / bitsPerSecond,
    jain: jain(shares),
    dropped: 1 - delays.length / sent,
    medianMs: delays[delays.length >> 1] ?? Number.NaN,
    mostMs: delays.at(-1) ?? Number.NaN,
  };
}

/** `budget`: seconds a measurement. */
export async function run(out: (line: string) => void, budget: number): Promise<void> {
  for (const mbit of [1, 10, 100])
    for (const senders of [1, 16]) {
      const result = await measureDatagrams(mbit * 1e6, senders, budget * 1000);
      const free = await measureDatagrams(mbit * 1e6, senders, 2000, false);
      const off = (result.bitsPerSecond / (mbit * 1e6) - 1) * 100;
      out(
        `datagrams at ${OFFERED}× ${mbit} Mbit/s, ${senders} senders: ${off.toFixed(2)} %, ` +
          `fullest 100 ms arrived ${result.arrivedPeak.toFixed(2)}×, Jain ${result.jain.toFixed(3)}, ` +
          `${(result.dropped * 100).toFixed(1)} % dropped, after ${result.medianMs.toFixed(1)} ms, at most ${result.mostMs.toFixed(0)} ` +
          `(without a limit ${free.medianMs.toFixed(1)}, ${free.mostMs.toFixed(0)}, ${(free.dropped * 100).toFixed(1)} % lost); load ${loadavg()[0]?.toFixed(1)}`,
      );
    }
}

if (import.meta.main) await run((line) => console.log(line), Number(process.argv[2] ?? 10));
