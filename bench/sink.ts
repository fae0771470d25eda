/**
 * The far end of a measurement, plain, one thread over epoll so that it costs next to nothing. The first byte of a
 * connection says what it is for: D it is sent `CONTENT` without end, U it is taken from without end and without a look,
 * C the same with each byte compared and a Y or N in the end, E it is echoed, that byte too.
 */
import { once } from "node:events";
import { writeSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { descriptorOf } from "#core/handover.ts";
import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { CHECKED_BYTES, CONTENT, isContent, openEndCalls } from "./end-calls.ts";

/** So long the end of the parent may stay unheard. */
const TURN_MS = 100;

const calls = openEndCalls();
const epoll = calls.openEpoll();
const file = calls.openFile();
writeSync(file, CONTENT);

type Work = (fd: number) => number;
const works = new Map<number, Work>();

/** Each does one step: a count, or an errno; 0: there is nothing more to do. */
const WORKS: Readonly<Record<string, (fd: number) => Work>> = {
  D: (fd) => {
    calls.watchRoom(epoll, fd);
    let at = 0;
    return () => {
      const sent = calls.sendFile(fd, file, at, CONTENT.length - at);
      at = (at + Math.max(0, sent)) % CONTENT.length;
      return sent;
    };
  },
  U: () => (fd) => calls.swallow(fd),
  C: () => {
    let at = 0;
    let verdict = "Y";
    return (fd) => {
      const bytes = calls.receive(fd, Math.min(calls.buffer.length, CHECKED_BYTES - at));
      if (bytes <= 0) return bytes;
      if (!isContent(calls.buffer.subarray(0, bytes), at)) verdict = "N";
      at += bytes;
      return at < CHECKED_BYTES ? bytes : answer(fd, verdict);
    };
  },
  E: (fd) => {
    answer(fd, "E");
    return echo;
  },
};

function echo(fd: number): number {
  const bytes = calls.receive(fd, calls.buffer.length);
  return bytes > 0 ? calls.send(fd, bytes) : bytes;
}

function answer(fd: number, text: string): number {
  calls.buffer[0] = text.charCodeAt(0);
  return calls.send(fd, 1);
}

function begin(fd: number): number {
  const bytes = calls.receive(fd, 1);
  if (bytes !== 1) return bytes;
  const work = WORKS[String.fromCharCode(calls.buffer[0] as number)]?.(fd);
  if (work === undefined) return 0;
  works.set(fd, work);
  return 1;
}

function step(fd: number): void {
  const bytes = (works.get(fd) ?? begin)(fd);
  if (bytes > 0 || bytes === EAGAIN || bytes === EINTR) return;
  works.delete(fd);
  calls.close(fd);
}

function accept(listener: number): void {
  for (let fd = calls.accept(listener); fd >= 0; fd = calls.accept(listener)) calls.watchBytes(epoll, fd);
}

/** A socket of the runtime's that it does not look at. */
async function listen(host: string): Promise<{ listener: number; port: number }> {
  const server = createServer().listen({ port: 0, host, backlog: 4096 });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const listener = calls.duplicate(descriptorOf(server));
  server.close();
  calls.noDelay(listener); // what it accepts is born with it
  calls.watchBytes(epoll, listener);
  return { listener, port };
}

const { listener, port } = await listen(process.argv[2] ?? "127.0.0.1");

function turn(): void {
  const endMs = performance.now() + TURN_MS;
  while (performance.now() < endMs) {
    const count = calls.wait(epoll, TURN_MS);
    for (let at = 0; at < count; at++) {
      const fd = calls.dataAt(at);
      if (fd === listener) accept(listener);
      else step(fd);
    }
  }
  setImmediate(turn);
}

process.on("disconnect", () => process.exit(0));
process.send?.(port);
turn();
