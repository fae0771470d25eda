/**
 * A ping-pong that weir relays, in a process of its own where nothing else happens, and one beside it that passes weir by: what
 * both wait for, the machine is short of. As a program: `node FILE PROXYPORT PID`; it answers each message with `Trips`.
 */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** One round trip, in ms. */
export interface Trip {
  readonly tookMs: number;
  /** What weir's main thread computed meanwhile. */
  readonly computedMs: number;
  /** Without the time in which that thread or this process was ready to go on and others had the cores. */
  readonly ownMs: number;
}

export interface Trips {
  readonly count: number;
  /** The longest first, by `ownMs`. */
  readonly longest: readonly Trip[];
  /** With the time that others had the cores. */
  readonly longestMs: number;
  readonly medianMs: number;
  /** The longest one past weir. */
  readonly besideMs: number;
}

const PROGRAM = fileURLToPath(import.meta.url);
const LONGEST = 3;

export class PingPong implements Disposable {
  readonly #child: ChildProcess;

  /** By the HTTP proxy at a port of the program with that process id. */
  constructor(port: number, pid: number) {
    this.#child = fork(PROGRAM, [String(port), String(pid)], {
      execArgv: ["--single-threaded-gc"],
    });
  }

  /** The round trips while the work lasts. */
  async during(work: () => Promise<unknown>): Promise<Trips> {
    await this.#take();
    await work();
    return this.#take();
  }

  [Symbol.dispose](): void {
    this.#child.kill("SIGKILL");
  }

  /** Those since the last time. */
  async #take(): Promise<Trips> {
    const answered = once(this.#child, "message");
    this.#child.send("take");
    const [trips]: Trips[] = await answered;
    if (trips === undefined) throw new Error("no round trips came");
    return trips;
  }
}

export function shownTrips({ count, longest, longestMs, medianMs, besideMs }: Trips): string {
  const shown = longest.map(({ ownMs, computedMs }) => `${Math.round(ownMs)} (${Math.round(computedMs)})`);
  const waited = `${Math.round(longestMs)} ms with what others computed, ${Math.round(besideMs)} past weir`;
  return `longest ${shown.join(", ")} ms (computing) of ${count}; ${waited}; median ${medianMs.toFixed(2)} ms`;
}

async function relayed(port: number, echo: Server): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port }).setNoDelay();
  socket.write(`CONNECT 127.0.0.1:${(echo.address() as AddressInfo).port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await once(socket, "data");
  return socket;
}

async function plain(echo: Server): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port: (echo.address() as AddressInfo).port }).setNoDelay();
  await once(socket, "connect");
  return socket;
}

/** Of the main thread of a process: what it has computed, and how long it has waited for a core (proc_pid_schedstat). */
function scheduled(pid: string | number): readonly [computedMs: number, waitedMs: number] {
  const [computed = 0, waited = 0] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "latin1")
    .split(" ")
    .map(Number);
  return [computed / 1e6, waited / 1e6];
}

async function trip(socket: Socket): Promise<number> {
  const from = performance.now();
  socket.write("ping");
  await once(socket, "data");
  return performance.now() - from;
}

/** About a thousand a second: a client that never rests would take the core from what it measures. */
async function play(port: number, pid: string): Promise<void> {
  const echo = createServer((socket) => void socket.setNoDelay().pipe(socket)).listen(0, "127.0.0.1");
  await once(echo, "listening");
  const [far, near] = await Promise.all([relayed(port, echo), plain(echo)]);
  let trips: Trip[] = [];
  let besideMs = 0;
  process.on("message", () => {
    const byTime = trips.map(({ tookMs }) => tookMs).toSorted((a, b) => b - a);
    const told: Trips = {
      count: trips.length,
      longest: trips.toSorted((a, b) => b.ownMs - a.ownMs).slice(0, LONGEST),
      longestMs: byTime[0] ?? 0,
      medianMs: byTime[byTime.length >> 1] ?? 0,
      besideMs,
    };
    process.send?.(told);
    trips = [];
    besideMs = 0;
  });
  void (async () => {
    for (; ; await delay(1)) besideMs = Math.max(besideMs, await trip(near));
  })();
  for (; ; await delay(1)) {
    const [computed, waited] = scheduled(pid);
    const [, waitedHere] = scheduled(process.pid);
    const tookMs = await trip(far);
    const [computedAfter, waitedAfter] = scheduled(pid);
    const coresMs = waitedAfter - waited + scheduled(process.pid)[1] - waitedHere;
    trips.push({ tookMs, computedMs: computedAfter - computed, ownMs: Math.max(0, tookMs - coresMs) });
  }
}

if (process.argv[1] === PROGRAM) await play(Number(process.argv[2]), process.argv[3] ?? "");
