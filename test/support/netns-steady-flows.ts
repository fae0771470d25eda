/**
 * Runs in a namespace: `node netns-steady-flows.ts <host4> <host6> <fake4> <fake6> [<local host>:<port>]` keeps talking to
 * port 4007 of both hosts over UDP (flows that last and new ones) and TCP, and to unused addresses. With a local host
 * it also keeps one connection with it for good. Answers each line with what has happened since the last one, as JSON.
 */
import { createSocket, type Socket } from "node:dgram";
import { connect } from "node:net";
import { createInterface } from "node:readline";

export interface Since {
  /** Datagrams of both families. */
  readonly sent: number;
  /** Datagrams that came back, connections that were answered. */
  readonly udp4: number;
  readonly udp6: number;
  readonly tcp4: number;
  readonly tcp6: number;
  /** Answers in the connection with the local host, and the longest time without one. */
  readonly rounds: number;
  readonly silenceMs: number;
}

const [host4 = "", host6 = "", fake4 = "", fake6 = "", local = ""] = process.argv.slice(2);
const PORT = 4007;
const LASTING = 2;
const UDP_MS = 10;
const NEW_MS = 100;
const TCP_MS = 100;
const TCP_TIMEOUT_MS = 10_000;
/** More at once on a busy machine would only have each of them come too late. */
const TCP_AT_ONCE = 10;
const LOCAL_MS = 20;

let now = { sent: 0, udp4: 0, udp6: 0, tcp4: 0, tcp6: 0, rounds: 0, silenceMs: 0 };
const HOSTS = [
  { host: host4, fake: fake4, type: "udp4", udp: "udp4", tcp: "tcp4" },
  { host: host6, fake: fake6, type: "udp6", udp: "udp6", tcp: "tcp6" },
] as const;

function open({ type, udp }: (typeof HOSTS)[number]): Socket {
  const socket = createSocket(type);
  socket.on("message", () => now[udp]++);
  socket.on("error", () => {}); // while nothing may leave, sending fails
  socket.unref();
  return socket;
}

function say(socket: Socket, host: string): void {
  now.sent++;
  socket.send("anybody?", PORT, host, () => {});
}

for (const at of HOSTS) {
  const lasting = Array.from({ length: LASTING }, () => open(at));
  setInterval(() => lasting.forEach((socket) => say(socket, at.host)), UDP_MS);
  const fake = open(at);
  setInterval(() => {
    const fresh = open(at);
    say(fresh, at.host);
    say(fake, at.fake);
    setTimeout(() => fresh.close(), 1_000);
    const nowhere = connect(PORT, at.fake).on("error", () => {});
    nowhere.setTimeout(200, () => nowhere.destroy());
  }, NEW_MS);
  let waiting = 0;
  setInterval(() => {
    if (waiting === TCP_AT_ONCE) return;
    waiting++;
    const socket = connect(PORT, at.host, () => socket.end("hello"));
    socket.once("close", () => waiting--);
    socket.on("error", () => {}).setTimeout(TCP_TIMEOUT_MS, () => socket.destroy());
    socket.once("data", () => now[at.tcp]++);
  }, TCP_MS);
}

if (local !== "") {
  const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(local) ?? [];
  const socket = connect(Number(port), host);
  let receivedMs = performance.now();
  socket.on("close", () => process.exit(3)); // it was to go on
  socket.on("data", () => {
    now.rounds++;
    const atMs = performance.now();
    now.silenceMs = Math.max(now.silenceMs, Math.round(atMs - receivedMs));
    receivedMs = atMs;
    setTimeout(() => socket.write("on"), LOCAL_MS);
  });
  socket.write("on");
}

const lines = createInterface(process.stdin);
lines.on("line", () => {
  console.log(JSON.stringify(now satisfies Since));
  now = { sent: 0, udp4: 0, udp6: 0, tcp4: 0, tcp6: 0, rounds: 0, silenceMs: 0 };
});
lines.on("close", () => process.exit(0));
