/**
 * The two ends of a datagram measurement, in processes of their own: `far HOST runs|plain` is what a proxy leads to, `load
 * HOST runs|plain` its client, by a SOCKS5 association where there is one. The receiver answers every 64 datagrams how
 * many have come, on the same way back; the sender keeps so many under way at most, or sends at a rate and takes what comes
 * of it. With `runs` the ends use UDP_SEGMENT and UDP_GRO, too.
 */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import type { Endpoint, Ip } from "#core/session.ts";
import { DatagramSockets, type DatagramSocket, type OnDatagram } from "#net/udp/datagram-socket.ts";
import { openBatchedDatagrams } from "#platform/datagrams.ts";

export interface UdpTask {
  readonly direction: "up" | "down";
  /** Null: straight to the far end. */
  readonly socksPort: number | null;
  readonly far: Endpoint;
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

const LOOPBACK = "127.0.0.1" as Ip;
const BURST = 64;
const WINDOW = 256; // what the receive buffers of a system with defaults hold
/** Without a report for so long everything under way is taken for lost. */
const LOST_MS = 20;
/** Of each run, before anything is counted. */
const WARM_UP_MS = 300;
/** The first byte of a datagram. */
const KIND = { data: 0, request: 1, report: 2 } as const;
// A request for a run down: KIND(1) MS(4) RATE(4, 0: as fast as it goes) BYTES(2). Report: KIND(1) COUNT(8).
const REQUEST_BYTES = 11;
const REPORT_BYTES = 9;

const [, , role = "", host = LOOPBACK, ends = "plain"] = process.argv;
const sockets = new DatagramSockets(() => openBatchedDatagrams(ends === "runs"));

async function bound(on: OnDatagram): Promise<DatagramSocket> {
  const socket = createSocket({ type: "udp4", recvBufferSize: 4 << 20, sendBufferSize: 1 << 20 });
  socket.on("error", () => {}); // of one datagram
  socket.bind({ address: host, port: 0 });
  await once(socket, "listening");
  const taken = sockets.take(socket, on);
  taken.begin();
  return taken;
}

type Send = (payload: Buffer) => void;

/** Counts what arrives and tells the sender of it. */
function receiver(): (answer: Send) => void {
  let [count, told] = [0, 0];
  const report = Buffer.alloc(REPORT_BYTES, KIND.report);
  let send: Send = () => {};
  const tell = (): void => {
    if (count === told) return;
    told = count;
    report.writeDoubleLE(count, 1);
    send(report);
  };
  setInterval(tell, 50).unref();
  return (answer) => {
    count++;
    send = answer;
    if (count - told >= BURST) tell();
  };
}

/** Sends until the time is over. */
class Run {
  readonly #task: Pick<UdpTask, "bytes" | "ms" | "perSecond">;
  readonly #send: Send;
  readonly #payload: Buffer;
  #told = 0;
  #sent = 0;
  #underWay = 0;
  #receivedAtMs = performance.now();

  constructor(task: Pick<UdpTask, "bytes" | "ms" | "perSecond">, send: Send) {
    this.#task = task;
    this.#send = send;
    this.#payload = Buffer.alloc(task.bytes, KIND.data);
  }

  onReport(message: Buffer): void {
    const count = message.readDoubleLE(1);
    this.#underWay = Math.max(0, this.#underWay - (count - this.#told));
    this.#told = count;
    this.#receivedAtMs = performance.now();
    if (this.#task.perSecond === null) this.#fill();
  }

  async result(): Promise<UdpResult> {
    const { ms, perSecond } = this.#task;
    const startMs = performance.now();
    let [fromMs, from] = [0, 0];
    const { promise, resolve } = Promise.withResolvers<UdpResult>();
    const timer = setInterval(() => {
      const nowMs = performance.now();
      if (perSecond !== null) this.#burst(Math.floor(((nowMs - startMs) * perSecond) / 1_000) - this.#sent);
      else if (this.#sent === 0 || nowMs - this.#receivedAtMs > LOST_MS) {
        this.#underWay = 0;
        this.#receivedAtMs = nowMs;
        this.#fill();
      }
      if (fromMs === 0 && nowMs - startMs > WARM_UP_MS) [fromMs, from] = [nowMs, this.#told];
      if (nowMs - startMs < WARM_UP_MS + ms) return;
      clearInterval(timer);
      const rate = ((this.#told - from) / (nowMs - fromMs)) * 1_000;
      setTimeout(() => resolve({ sent: this.#sent, received: this.#told, rate }), 500);
    }, 1);
    return promise;
  }

  #fill(): void {
    while (this.#underWay <= WINDOW - BURST) this.#burst(BURST);
  }

  #burst(count: number): void {
    for (let at = 0; at < count; at++) this.#send(this.#payload);
    this.#sent += count;
    this.#underWay += count;
  }
}

async function far(): Promise<void> {
  let run: Run | null = null;
  let [count, client] = [receiver(), ""];
  const out: DatagramSocket = await bound((message, { ip, port }) => {
    if (client !== `${ip} ${port}`) [count, client] = [receiver(), `${ip} ${port}`]; // every run has its own socket
    const answer = (bytes: Buffer): void => out.send(null, bytes, ip, port);
    if (message[0] === KIND.data) return count(answer);
    if (message[0] === KIND.report) return run?.onReport(message);
    const perSecond = message.readUInt32BE(5) || null;
    run = new Run({ ms: message.readUInt32BE(1), perSecond, bytes: message.readUInt16BE(9) }, answer);
    void run.result().then((result) => process.send?.(result));
  });
  process.send?.(out.port);
}

/** RFC 1928 §7: RSV(2)=0 FRAG(1)=0 ATYP(1)=1 DST.ADDR(4) DST.PORT(2). */
async function associate(socksPort: number): Promise<{ port: number } & Disposable> {
  const control = connect({ port: socksPort, host: LOOPBACK });
  await once(control, "connect");
  control.on("error", () => {}); // the subject ends first
  control.write(Buffer.from([5, 1, 0]));
  await once(control, "data");
  control.write(Buffer.from([5, 3, 0, 1, 0, 0, 0, 0, 0, 0]));
  const [reply] = (await once(control, "data")) as [Buffer];
  return { port: reply.readUInt16BE(8), [Symbol.dispose]: () => void control.destroy() };
}

const HEADER_BYTES = 10;

async function near({ socksPort, far: to, direction, ...task }: UdpTask): Promise<UdpResult | null> {
  using association = socksPort === null ? null : await associate(socksPort);
  const head = association === null ? null : headerOf(to);
  const { ip, port } = association === null ? to : { ip: LOOPBACK, port: association.port };
  const count = receiver();
  const out: DatagramSocket = await bound((bytes) => {
    const message = head === null ? bytes : bytes.subarray(HEADER_BYTES);
    if (message[0] === KIND.report) run.onReport(message);
    else count(send);
  });
  const send: Send = (payload) => out.send(head, payload, ip, port);
  const run = new Run(task, send);
  if (direction === "up") {
    const result = await run.result();
    out.close();
    return result;
  }
  const request = Buffer.alloc(REQUEST_BYTES, KIND.request);
  request.writeUInt32BE(task.ms, 1);
  request.writeUInt32BE(task.perSecond ?? 0, 5);
  request.writeUInt16BE(task.bytes, 9);
  send(request);
  await once(process, "message"); // the far end has told its result
  out.close();
  return null;
}

function headerOf({ ip, port }: Endpoint): Buffer {
  return Buffer.from([0, 0, 0, 1, ...ip.split(".").map(Number), port >> 8, port & 255]);
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
