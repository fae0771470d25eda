/** What probers learn of a server with REALITY when they compare it with the site that it stands for. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type Listening, listening } from "../reality.ts";
import { quantile } from "../slow-clients.ts";
import { until } from "../until.ts";
import { recordShapes } from "./recording.ts";

/** What a prober does. */
export interface Prober {
  readonly says: Buffer;
  /** Said once the first bytes have come back. */
  readonly answers?: Buffer;
  /** `fin`: ends its side behind its words; `reset`: breaks off; `hold`: waits for the other side to end. */
  readonly ends: "fin" | "reset" | "hold";
}

export interface ProberKind {
  readonly name: string;
  /** The server may answer by itself, for the hello is one of its clients'. */
  readonly isAdmitted?: true;
  /** `turn`: from 0 on. */
  next(turn: number): Prober;
}

/** What came of a visit. */
interface Visit {
  readonly heard: Buffer;
  readonly end: "end" | "reset" | "none";
  readonly firstMs: number;
  readonly closedMs: number;
}

export interface KindFindings {
  readonly kind: string;
  readonly count: number;
  /** What differed from the site, with the turn in which it did. */
  readonly differences: readonly string[];
  /** Medians to the first byte and to the end, through the server and through a plain relay. */
  readonly firstMs: readonly [number, number];
  readonly closedMs: readonly [number, number];
}

export interface Ways {
  /** Ports of the server with REALITY and of a plain relay; both lead to the tap, and the tap to the site. */
  readonly server: number;
  readonly relay: number;
  readonly tap: Tap;
}

const GIVEN_UP_MS = 5000;

/** Each prober comes by both ways, one behind the other. */
export async function visitAs(ways: Ways, kind: ProberKind, turns: readonly number[]): Promise<KindFindings> {
  const differences: string[] = [];
  const visits: (readonly [Visit, Visit])[] = [];
  for (const turn of turns) {
    const prober = kind.next(turn);
    const isFirst = turn % 2 === 0; // the second probe finds warm caches
    const early = isFirst ? null : await visitTapped(ways.relay, prober, ways.tap);
    const [seen, beyond] = await visitTapped(ways.server, prober, ways.tap);
    const [expected] = early ?? (await visitTapped(ways.relay, prober, ways.tap));
    visits.push([seen, expected]);
    for (const what of compare(kind, prober, { seen, expected, beyond }))
      differences.push(`turn ${turn}: ${what}`);
  }
  // Not every prober is answered.
  const median = (pick: (one: Visit) => number, at: 0 | 1): number => {
    const both = visits.filter((pair) => pair.every((one) => Number.isFinite(pick(one))));
    return quantile(
      both.map((pair) => pick(pair[at])).toSorted((a, b) => a - b),
      0.5,
    );
  };
  return {
    kind: kind.name,
    count: visits.length,
    differences,
    firstMs: [median((one) => one.firstMs, 0), median((one) => one.firstMs, 1)],
    closedMs: [median((one) => one.closedMs, 0), median((one) => one.closedMs, 1)],
  };
}

interface Compared {
  readonly seen: Visit;
  readonly expected: Visit;
  readonly beyond: Tapped;
}

/** With what the site did on the same connection; how another visit ended says more only where both ended alike. */
function* compare(kind: ProberKind, prober: Prober, { seen, expected, beyond }: Compared) {
  const { heard, said, end } = beyond;
  if (prober.ends === "reset") return; // what was on its way is lost by either way
  const asShown = kind.isAdmitted === true ? recordShapes : (bytes: Buffer) => bytes.toString("hex");
  if (asShown(seen.heard) !== asShown(said))
    yield `the site sent ${recordShapes(said)}, the prober got ${recordShapes(seen.heard)}`;
  if (seen.end !== end) yield `it ended by ${seen.end}, the site by ${end}`;
  const words = prober.answers === undefined ? prober.says : Buffer.concat([prober.says, prober.answers]);
  if (!heard.equals(words.subarray(0, heard.length))) yield `the site got other bytes than the prober sent`;
  if (end !== expected.end) return; // the site took too long for itself once
  if (prober.ends === "fin" && end !== "reset" && heard.length !== words.length)
    yield `the site got ${heard.length} of ${words.length} bytes`;
}

/** With what the site had of it. */
async function visitTapped(port: number, prober: Prober, tap: Tap): Promise<readonly [Visit, Tapped]> {
  const before = tap.count;
  const seen = await visit(port, prober);
  return [seen, await tap.since(before)];
}

async function visit(port: number, prober: Prober): Promise<Visit> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  const heard: Buffer[] = [];
  let end: Visit["end"] = "none";
  await once(socket, "connect");
  const startedMs = performance.now();
  let firstMs = Number.NaN;
  socket.on("error", () => (end = "reset"));
  const over = new Promise<number>((resolve) => {
    socket.once("end", () => {
      if (end === "none") end = "end";
      resolve(performance.now() - startedMs);
    });
    socket.once("close", () => resolve(performance.now() - startedMs));
  });
  const finish = (): void => {
    if (prober.ends === "fin") socket.end();
    if (prober.ends === "reset") socket.resetAndDestroy();
  };
  socket.on("data", (bytes: Buffer) => {
    heard.push(bytes);
    if (heard.length > 1) return;
    firstMs = performance.now() - startedMs;
    if (prober.answers === undefined) return;
    socket.write(prober.answers);
    finish();
  });
  socket.write(prober.says);
  if (prober.answers === undefined) finish();
  const closedMs = await Promise.race([over, delay(GIVEN_UP_MS, Number.NaN, { ref: false })]);
  socket.destroy();
  return { heard: Buffer.concat(heard), end, firstMs, closedMs };
}

/** One connection as the site had it. */
export interface Tapped {
  heard: Buffer;
  said: Buffer;
  /** How the site ended it. */
  end: Visit["end"];
}

/** A relay that notes both directions. */
export class Tap implements AsyncDisposable {
  readonly #connections: { readonly tapped: Tapped; readonly over: Promise<void> }[] = [];
  readonly #server: Listening;

  private constructor(server: Listening) {
    this.#server = server;
  }

  /** `delayMs`: what a piece takes each way. */
  static async open(port: number, delayMs = 0): Promise<Tap> {
    const accept = (socket: Socket): void => {
      const tapped: Tapped = { heard: Buffer.alloc(0), said: Buffer.alloc(0), end: "none" };
      const over = relayPlainly(socket, port, {
        delayMs,
        up: (bytes) => (tapped.heard = Buffer.concat([tapped.heard, bytes])),
        down: (bytes) => (tapped.said = Buffer.concat([tapped.said, bytes])),
        ended: (how) => {
          if (tapped.end === "none") tapped.end = how;
        },
      });
      tap.#connections.push({ tapped, over });
    };
    const tap = new Tap(await listening(createServer({ allowHalfOpen: true, noDelay: true }, accept)));
    return tap;
  }

  get port(): number {
    return this.#server.port;
  }

  get count(): number {
    return this.#connections.length;
  }

  /** The one connection since then, once it is over: a prober who breaks off may be gone before it is there. */
  async since(count: number): Promise<Tapped> {
    await until("the site was dialled", () => this.count > count);
    const [one, ...others] = this.#connections.slice(count);
    if (one === undefined || others.length > 0) throw new Error(`${others.length} connections beside one`);
    await Promise.race([one.over, delay(GIVEN_UP_MS, undefined, { ref: false })]);
    return one.tapped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
  }
}

interface PlainRelay {
  readonly delayMs?: number;
  readonly up?: (bytes: Buffer) => void;
  readonly down?: (bytes: Buffer) => void;
  /** By the far side. */
  readonly ended?: (how: "end" | "reset") => void;
}

/** What any relay does: bytes, ends of one side, and breaks. Settles when both are closed. */
export function relayPlainly(
  near: Socket,
  port: number,
  { delayMs = 0, up, down, ended }: PlainRelay = {},
): Promise<void> {
  const far = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  const later =
    delayMs === 0 ? (run: () => void) => run() : (run: () => void) => void setTimeout(run, delayMs);
  const join = (from: Socket, to: Socket, note?: (bytes: Buffer) => void): void => {
    from.on("data", (bytes: Buffer) => {
      note?.(bytes);
      later(() => to.writable && to.write(bytes));
    });
    from.on("end", () => later(() => to.writable && to.end()));
    from.on("error", () => later(() => !to.destroyed && to.resetAndDestroy()));
  };
  join(near, far, up);
  join(far, near, down);
  far.on("end", () => ended?.("end")).on("error", () => ended?.("reset"));
  const closed = [near, far].map(
    (socket) => new Promise<void>((resolve) => socket.once("close", () => resolve())),
  );
  return Promise.all(closed).then(() => {});
}

/** For programs that measure: a relay without a note. */
export async function openPlainRelay(port: number): Promise<Listening> {
  return await listening(
    createServer({ allowHalfOpen: true, noDelay: true }, (socket) => void relayPlainly(socket, port)),
  );
}
