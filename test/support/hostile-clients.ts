/**
 * `node hostile-clients.ts SECURE_PORT PLAIN_PORT A_MINUTE`: so many clients a minute of a TLS listener and a plain one that
 * never authenticate: half a handshake and silence, nonsense, a hello in fragments, a request byte by byte. In a process of
 * its own, until it is ended; then prints how many there were.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { randomFrom } from "./random.ts";
import { clientHello } from "./hostile-tls-clients.ts";

const [secure = 0, plain = 0, aMinute = 600] = process.argv.slice(2).map(Number);
const TICK_MS = 100;
/** Beyond it none is added: this process shall not run out of descriptors before the other one. */
const MOST_OPEN = 4_000;
const LIVES_MS = 8_000;
const FRAGMENT_MS = 50;
const REQUEST = "CONNECT 127.0.0.1:9 HTTP/1.1\r\nX-Slow: ";

const random = randomFrom(20_261_123);
const hello = await clientHello();
const open = new Set<Socket>();
let came = 0;

async function drip(socket: Socket, bytes: Buffer, size: number): Promise<void> {
  for (let at = 0; at < bytes.length && !socket.destroyed; at += size) {
    socket.write(bytes.subarray(at, at + size));
    await delay(FRAGMENT_MS);
  }
}

const KINDS: readonly ((socket: Socket) => unknown)[] = [
  (socket) => socket.write(hello.subarray(0, 1 + random(hello.length))),
  (socket) => socket.end(Buffer.from(Array.from({ length: 1 + random(2_000) }, () => random(256)))),
  (socket) => drip(socket, hello, 1 + random(40)),
  (socket) => drip(socket, Buffer.from(REQUEST + "x".repeat(200)), 1 + random(3)),
  () => {}, // connects, and no more
];

function admit(): void {
  came++;
  const socket = connect({ host: "127.0.0.1", port: random(2) === 0 ? secure : plain, noDelay: true });
  open.add(socket);
  socket.on("error", () => {}); // it is refused, which is what it came for
  const timer = setTimeout(() => socket.resetAndDestroy(), random(LIVES_MS));
  socket.on("close", () => {
    clearTimeout(timer);
    open.delete(socket);
  });
  socket.resume();
  (KINDS[random(KINDS.length)] as (socket: Socket) => unknown)(socket);
}

const startedMs = performance.now();
let due = 0;
setInterval(() => {
  const next = ((performance.now() - startedMs) / 60_000) * aMinute;
  for (; due < next; due++) if (open.size < MOST_OPEN) admit();
}, TICK_MS);
process.once("SIGTERM", () => {
  process.stdout.write(`${came}\n`, () => process.exit(0));
});
