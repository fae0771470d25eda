/**
 * The two ends of a datagram measurement: `sink` counts and tells the sender directly how many have come, `load` sends
 * through a SOCKS5 association, or straight where there is none, with so many under way at most.
 */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import type { Ip } from "#core/session.ts";
import { DatagramSockets, type DatagramSocket, type OnDatagram } from "#net/datagram-socket.ts";

export interface UdpTask {
  /** Null: straight to the sink. */
  readonly socksPort: number | null;
  readonly sinkPort: number;
  readonly bytes: number;
  readonly ms: number;
}

const HOST = "127.0.0.1" as Ip;
const BURST = 64;
const WINDOW = 256; // what the receive buffers of a system with defaults hold
/** Without news for so long everything under way is taken for lost. */
const LOST_MS = 20;

const sockets = new DatagramSockets();

async function bound(on: OnDatagram): Promise<DatagramSocket> {
  const socket: UdpSocket = createSocket({ type: "udp4", recvBufferSize: 4 << 20, sendBufferSize: 1 << 20 });
  socket.on("error", () => {}); // of one datagram
  socket.bind({ address: HOST, port: 0 });
  await once(socket, "listening");
  return sockets.take(socket, on);
}

async function sink(): Promise<void> {
  let count = 0;
  const news = Buffer.alloc(8);
  const socket = await bound((payload) => {
    if (++count % BURST !== 0) return;
    news.writeDoubleLE(count);
    socket.send([Buffer.from(news)], { ip: HOST, port: payload.readUInt16BE(0) });
  });
  process.send?.(socket.port);
}

/** RFC 1928 §7: RSV(2)=0 FRAG(1)=0 ATYP(1)=1 DST.ADDR(4) DST.PORT(2). */
async function associate(socksPort: number): Promise<number> {
  const control = connect({ port: socksPort, host: HOST });
  await once(control, "connect");
  control.write(Buffer.from([5, 1, 0]));
  await once(control, "data");
  control.write(Buffer.from([5, 3, 0, 1, 0, 0, 0, 0, 0, 0]));
  const [reply] = (await once(control, "data")) as [Buffer];
  control.on("error", () => {}); // the subject ends first
  return reply.readUInt16BE(8);
}

/** Datagrams a second that reached the sink. */
async function load({ socksPort, sinkPort, bytes, ms }: UdpTask): Promise<number> {
  let [told, first, underWay, heardAtMs] = [0, -1, 0, performance.now()];
  const news = await bound((payload) => {
    const count = payload.readDoubleLE(0);
    if (first < 0) first = count - BURST;
    underWay = Math.max(0, underWay - (count - Math.max(told, first)));
    told = count;
    heardAtMs = performance.now();
  });
  const out = await bound(() => {});
  const payload = Buffer.alloc(bytes);
  payload.writeUInt16BE(news.port, 0);
  const header = Buffer.from([0, 0, 0, 1, 127, 0, 0, 1, sinkPort >> 8, sinkPort & 255]);
  const parts = socksPort === null ? [payload] : [header, payload];
  const to = { ip: HOST, port: socksPort === null ? sinkPort : await associate(socksPort) };
  let [startMs, startCount] = [performance.now(), -1];
  const { promise, resolve } = Promise.withResolvers<number>();
  const turn = (): void => {
    const nowMs = performance.now();
    if (startCount < 0 && told > 0 && nowMs - startMs > 300) [startMs, startCount] = [nowMs, told];
    if (startCount >= 0 && nowMs - startMs > ms) return resolve((told - startCount) / (nowMs - startMs));
    if (nowMs - heardAtMs > LOST_MS) [underWay, heardAtMs] = [0, nowMs];
    for (; underWay <= WINDOW - BURST; underWay += BURST)
      for (let at = 0; at < BURST; at++) out.send(parts, to);
    setImmediate(turn);
  };
  turn();
  const perMs = await promise;
  out.close();
  news.close();
  return perMs * 1_000;
}

const [, , role] = process.argv;
if (role === "sink") await sink();
else if (role === "load")
  process.on("message", (task: UdpTask) => void load(task).then((result) => process.send?.(result)));
process.on("disconnect", () => process.exit(0));
