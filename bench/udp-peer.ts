/**
 * The two ends of a datagram measurement, in processes of their own. `far` is what a proxy leads to, `near` its client by a
 * SOCKS5 association. Whoever receives tells the sender directly how many have come; the sender keeps so many under way at
 * most, or sends at a rate and takes what comes of it. With `runs` the ends use UDP_SEGMENT and UDP_GRO, too.
 */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import type { Endpoint, Ip } from "#core/session.ts";
import { DatagramSockets, type DatagramSocket, type OnDatagram } from "#net/datagram-socket.ts";
import { openBatchedDatagrams } from "#platform/datagrams.ts";

export interface UdpTask {
  readonly direction: "up" | "down";
  /** Null: straight to the far end. */
  readonly socksPort: number | null;
  readonly farPort: number;
  readonly bytes: number;
  readonly ms: number;
  /** Null: as fast as it goes. */
  readonly perSecond: number | null;
}

export interface UdpResult {
  readonly sent: number;
  readonly received: number;
  /** Arrived, a second. */
  readonly rate: number;
}

const HOST = "127.0.0.1" as Ip;
const BURST = 64;
const WINDOW = 256; // what the receive buffers of a system with defaults hold
/** Without news for so long everything under way is taken for lost. */
const LOST_MS = 20;
/** Of each run, before anything is counted. */
const WARM_UP_MS = 300;
const ASKS_FOR_MORE = 1;

// Datagram: NEWS-PORT(2) KIND(1), in a request for a run down MS(4) RATE(4, 0: as fast as it goes) BYTES(2), then anything.
const REQUEST_BYTES = 13;

const [, , role = "", ends = "plain"] = process.argv;
const sockets = new DatagramSockets(() => openBatchedDatagrams(ends === "runs"));

async function bound(on: OnDatagram): Promise<DatagramSocket> {
  const socket = createSocket({ type: "udp4", recvBufferSize: 4 << 20, sendBufferSize: 1 << 20 });
  socket.on("error", () => {}); // of one datagram
  socket.bind({ address: HOST, port: 0 });
  await once(socket, "listening");
  return sockets.take(socket, on);
}

/** Counts what arrives and tells of it. */
function receiver(news: () => DatagramSocket): OnDatagram {
  let [count, told] = [0, 0];
  const message = Buffer.alloc(8);
  let port = 0;
  const tell = (): void => {
    if (count === told) return;
    told = count;
    message.writeDoubleLE(count);
    news().send(null, message, HOST, port);
  };
  setInterval(tell, 50).unref();
  return (payload) => {
    count++;
    port = payload.readUInt16BE(0);
    if (count - told >= BURST) tell();
  };
}

/** Sends with `send` until the time is over. */
async function run(
  { bytes, ms, perSecond }: Pick<UdpTask, "bytes" | "ms" | "perSecond">,
  send: (payload: Buffer) => void,
): Promise<UdpResult> {
  let [told, base, sent, underWay, heardAtMs] = [0, -1, 0, 0, performance.now()];
  const news = await bound((message) => {
    const count = message.readDoubleLE(0);
    if (base < 0) base = told = count - BURST;
    underWay = Math.max(0, underWay - (count - told));
    told = count;
    heardAtMs = performance.now();
    if (perSecond === null) fill();
  });
  const payload = Buffer.alloc(bytes);
  payload.writeUInt16BE(news.port, 0);
  const burst = (count: number): void => {
    for (let at = 0; at < count; at++) send(payload);
    sent += count;
    underWay += count;
  };
  const fill = (): void => {
    while (underWay <= WINDOW - BURST) burst(BURST);
  };
  const startMs = performance.now();
  const { promise, resolve } = Promise.withResolvers<UdpResult>();
  let [countedFromMs, countedFrom] = [0, 0];
  const timer = setInterval(() => {
    const nowMs = performance.now();
    if (perSecond !== null) burst(Math.floor(((nowMs - startMs) * perSecond) / 1_000) - sent);
    else if (nowMs - heardAtMs > LOST_MS) {
      underWay = 0;
      heardAtMs = nowMs;
      fill();
    }
    if (countedFromMs === 0 && nowMs - startMs > WARM_UP_MS) [countedFromMs, countedFrom] = [nowMs, told];
    if (nowMs - startMs < WARM_UP_MS + ms) return;
    clearInterval(timer);
    const rate = ((told - countedFrom) / (nowMs - countedFromMs)) * 1_000;
    setTimeout(() => resolve({ sent, received: told - Math.max(base, 0), rate }), 500);
  }, 1);
  if (perSecond === null) fill();
  const result = await promise;
  news.close();
  return result;
}

async function far(): Promise<void> {
  const count = receiver(() => out);
  const onDatagram: OnDatagram = (payload, from) => {
    if (payload[2] !== ASKS_FOR_MORE) return count(payload, from);
    const task = {
      ms: payload.readUInt32BE(3),
      perSecond: payload.readUInt32BE(7) || null,
      bytes: payload.readUInt16BE(11),
    };
    const { ip, port }: Endpoint = from;
    void run(task, (bytes) => out.send(null, bytes, ip, port)).then((result) => process.send?.(result));
  };
  const out: DatagramSocket = await bound(onDatagram);
  process.send?.(out.port);
}

/** RFC 1928 §7: RSV(2)=0 FRAG(1)=0 ATYP(1)=1 DST.ADDR(4) DST.PORT(2). */
async function associate(socksPort: number): Promise<{ port: number } & Disposable> {
  const control = connect({ port: socksPort, host: HOST });
  await once(control, "connect");
  control.on("error", () => {}); // the subject ends first
  control.write(Buffer.from([5, 1, 0]));
  await once(control, "data");
  control.write(Buffer.from([5, 3, 0, 1, 0, 0, 0, 0, 0, 0]));
  const [reply] = (await once(control, "data")) as [Buffer];
  return { port: reply.readUInt16BE(8), [Symbol.dispose]: () => void control.destroy() };
}

const HEADER_BYTES = 10;

async function near({ socksPort, farPort, direction, ...task }: UdpTask): Promise<UdpResult | null> {
  using association = socksPort === null ? null : await associate(socksPort);
  const head =
    association === null ? null : Buffer.from([0, 0, 0, 1, 127, 0, 0, 1, farPort >> 8, farPort & 255]);
  const port = association === null ? farPort : association.port;
  const count = receiver(() => out);
  const out: DatagramSocket = await bound((bytes, from) =>
    count(head === null ? bytes : bytes.subarray(HEADER_BYTES), from),
  );
  if (direction === "up") {
    const result = await run(task, (payload) => out.send(head, payload, HOST, port));
    out.close();
    return result;
  }
  const request = Buffer.alloc(REQUEST_BYTES);
  request[2] = ASKS_FOR_MORE;
  request.writeUInt32BE(task.ms, 3);
  request.writeUInt32BE(task.perSecond ?? 0, 7);
  request.writeUInt16BE(task.bytes, 11);
  out.send(head, request, HOST, port);
  await once(process, "message"); // the far end has told its result
  out.close();
  return null;
}

if (role === "far") await far();
else if (role === "load")
  process.on("message", (task: UdpTask | "over") => {
    if (task === "over") return;
    void near(task).then((result) => {
      if (result !== null) process.send?.(result);
    });
  });
process.on("disconnect", () => process.exit(0));
