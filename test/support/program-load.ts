/** What a running program is put under by the proofs of long loads, and what is read of it from outside. */
import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { messageOf } from "#core/errors.ts";

/** Mebibytes of that process that are in memory. Linux only, like the next one. */
export function residentMiB(pid: number): number {
  const found = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"));
  return Number(found?.[1] ?? Number.NaN) / 1024;
}

export function openDescriptors(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** An HTTP proxy of the program. */
export interface Door {
  readonly port: number;
  readonly tls: boolean;
}

const ESTABLISHED = "HTTP/1.1 200 Connection established\r\n\r\n";
const QUESTION = Buffer.alloc(1_024, "honest");
const ANSWERED_WITHIN_MS = 30_000;
/** Lines of what went wrong; more say nothing new. */
const MOST_FAULTS = 20;

/** Clients that connect, are answered byte for byte by an origin that repeats, and close; one after the other in each lane. */
export class HonestClients {
  readonly faults: string[] = [];
  exchanges = 0;
  #tookMs: number[] = [];
  #goesOn = true;
  readonly #lanes: Promise<unknown>;

  constructor(doors: readonly Door[], originPort: number, pauseMs: number) {
    this.#lanes = Promise.all(doors.map((door) => this.#lane(door, originPort, pauseMs)));
  }

  /** In ms, of the exchanges since the last time. */
  takeP99(): number {
    const took = this.#tookMs.sort((a, b) => a - b);
    this.#tookMs = [];
    return took[Math.floor(took.length * 0.99)] ?? Number.NaN;
  }

  async stop(): Promise<void> {
    this.#goesOn = false;
    await this.#lanes;
  }

  async #lane(door: Door, originPort: number, pauseMs: number): Promise<void> {
    while (this.#goesOn) {
      const startedMs = performance.now();
      try {
        await exchange(door, originPort);
        this.#tookMs.push(performance.now() - startedMs);
        this.exchanges++;
      } catch (error) {
        if (this.faults.length < MOST_FAULTS) this.faults.push(`an honest client: ${messageOf(error)}`);
      }
      await delay(pauseMs);
    }
  }
}

async function exchange({ port, tls }: Door, originPort: number): Promise<void> {
  const to = { host: "127.0.0.1", port };
  const socket: Socket = tls ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to);
  const late = setTimeout(
    () => socket.destroy(new Error(`no answer within ${ANSWERED_WITHIN_MS} ms`)),
    ANSWERED_WITHIN_MS,
  );
  const received = new ReceivedBytes(socket);
  try {
    socket.write(`CONNECT 127.0.0.1:${originPort} HTTP/1.1\r\n\r\n`);
    const head = String(await received.take(ESTABLISHED.length));
    if (head !== ESTABLISHED) throw new Error(`refused: ${head}`);
    socket.write(QUESTION);
    if (!(await received.take(QUESTION.length)).equals(QUESTION))
      throw new Error("other bytes than were said");
  } finally {
    clearTimeout(late);
    socket.destroy();
  }
}

/** What a socket has been told, piece by piece. */
class ReceivedBytes {
  #bytes = Buffer.alloc(0);
  #wanted = 0;
  #wait: PromiseWithResolvers<Buffer> | null = null;

  constructor(socket: Socket) {
    socket.on("data", (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      this.#settle();
    });
    socket.on("error", (error) => this.#wait?.reject(error));
    socket.on("close", () => this.#wait?.reject(new Error(`closed behind ${this.#bytes.length} bytes`)));
  }

  /** Rejects where the socket closes before. */
  take(size: number): Promise<Buffer> {
    this.#wanted = size;
    this.#wait = Promise.withResolvers();
    const { promise } = this.#wait;
    this.#settle();
    return promise;
  }

  #settle(): void {
    if (this.#wait === null || this.#bytes.length < this.#wanted) return;
    this.#wait.resolve(this.#bytes.subarray(0, this.#wanted));
    this.#bytes = this.#bytes.subarray(this.#wanted);
    this.#wait = null;
  }
}

export interface Repeated extends AsyncDisposable {
  readonly faults: readonly string[];
  readonly rounds: number;
}

/** Does it again and again, one after the other, with a pause between. What it throws is a fault. */
export function repeat(what: string, everyMs: number, work: (round: number) => Promise<void>): Repeated {
  const faults: string[] = [];
  const stop = new AbortController();
  let rounds = 0;
  const run = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      try {
        await work(rounds++);
      } catch (error) {
        if (faults.length < MOST_FAULTS) faults.push(`${what}: ${messageOf(error)}`);
      }
      await delay(everyMs, undefined, { signal: stop.signal }).catch(() => {});
    }
  };
  const running = run();
  return {
    faults,
    get rounds() {
      return rounds;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await running;
    },
  };
}

/** Asks the Controller; throws where it does not answer with success. */
export async function ask(controller: number, method: string, path: string, body?: object): Promise<string> {
  const init = { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const answer = await fetch(`http://127.0.0.1:${controller}${path}`, init);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 200)}`);
  return text;
}
