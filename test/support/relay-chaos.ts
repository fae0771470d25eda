/** Connections that pause, half-close, reset and are killed at random, and a check of every byte that arrives. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Direction, Meter } from "#core/meter.ts";
import { dialTcp } from "#net/dial/dial.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import type { RelayBackend } from "#dataplane/backend.ts";
import { relay } from "#dataplane/event-loop/pump.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";

export interface ChaosOptions {
  readonly flows: number;
  readonly parallel: number;
  readonly seed: number;
  readonly backend: RelayBackend | null;
  /** Limited meters cut and hold at random. */
  readonly limited: boolean;
}

export interface ChaosResult {
  /** Ended by both sides; the others were reset or killed. */
  readonly whole: number;
  readonly bytes: number;
  /** What went wrong, a line each. */
  readonly faults: readonly string[];
}

/** What one side sends: with pauses, then an end or a reset. */
interface Side {
  readonly bytes: number;
  readonly piece: number;
  readonly pauseMs: number;
  /** Stops reading for so long in the middle. */
  readonly stallMs: number;
  /** Resets after so many bytes sent; Infinity: ends. */
  readonly resetsAt: number;
}

interface Script {
  readonly client: Side;
  readonly origin: Side;
  /** Null: it is not killed. */
  readonly killMs: number | null;
}

type Random = () => number;

function randomOf(seed: number): Random {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

/** So many pieces, each with its pause, take a second or two: one connection shall not keep a round waiting. */
const MOST_PIECES = 300;

function sideOf(random: Random): Side {
  const bytes = Math.floor(random() < 0.1 ? random() * 1_500_000 : random() ** 3 * 100_000);
  return {
    bytes,
    piece: Math.max(1 + Math.floor(random() * 120_000), Math.ceil(bytes / MOST_PIECES)),
    pauseMs: random() < 0.2 ? random() * 5 : 0,
    stallMs: random() < 0.2 ? random() * 30 : 0,
    resetsAt: random() < 0.1 ? random() * bytes : Infinity,
  };
}

function scriptOf(random: Random): Script {
  return {
    client: sideOf(random),
    origin: sideOf(random),
    killMs: random() < 0.05 ? random() * 40 : null,
  };
}

const BLOCK = randomBytes(1 << 20);
const HEADER_BYTES = 4;

/** The bytes of flow `id` from `offset` on; both directions send the same. */
function patternAt(id: number, offset: number, length: number): Buffer {
  const from = (id * 7919 + offset) % BLOCK.length;
  const first = BLOCK.subarray(from, from + length);
  return first.length === length ? first : Buffer.concat([first, BLOCK.subarray(0, length - first.length)]);
}

/** What has come of a side's stream so far. */
class Arrival {
  bytes = 0;
  ended = false;
  readonly #id: number;
  readonly #onFault: (fault: string) => void;
  constructor(id: number, onFault: (fault: string) => void) {
    this.#id = id;
    this.#onFault = onFault;
  }

  take(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; at += BLOCK.length / 2) {
      const part = chunk.subarray(at, at + BLOCK.length / 2);
      if (!part.equals(patternAt(this.#id, this.bytes, part.length)))
        this.#onFault(`flow ${this.#id}: other bytes at ${this.bytes}`);
      this.bytes += part.length;
    }
  }
}

async function play(socket: Socket, side: Side, id: number, ends: Arrival): Promise<void> {
  socket.on("error", () => {}); // resets are what it is about; the sums tell
  socket.on("data", (chunk: Buffer) => ends.take(chunk));
  socket.on("end", () => (ends.ended = true));
  if (side.stallMs > 0) {
    socket.pause();
    setTimeout(() => socket.resume(), side.stallMs);
  }
  for (let sent = 0; sent < side.bytes && !socket.destroyed;) {
    if (sent >= side.resetsAt) break;
    const size = Math.min(side.piece, side.bytes - sent, Math.max(1, Math.ceil(side.resetsAt - sent)));
    if (!socket.write(patternAt(id, sent, size)))
      await Promise.race([once(socket, "drain"), closed(socket)]).catch(() => {});
    sent += size;
    if (side.pauseMs > 0) await delay(side.pauseMs);
  }
  if (side.resetsAt < Infinity) socket.resetAndDestroy();
  else socket.end();
  await closed(socket);
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once("close", () => resolve());
  });
}

/** One connection's accounts. */
interface Books {
  readonly moved: Record<Direction, number>;
  readonly charged: Record<Direction, number>;
}

function meterOf(books: Books, { client, origin }: Script, limited: boolean, random: Random): Meter {
  const leastBytes = Math.ceil(Math.max(client.bytes, origin.bytes) / MOST_PIECES);
  return {
    free: !limited,
    pieceBytes: limited ? Math.max(1 + Math.floor(random() * 60_000), leastBytes) : Number.MAX_SAFE_INTEGER,
    reserve(direction, bytes) {
      books.charged[direction] += bytes;
      return limited && random() < 0.2 ? random() * 3 : 0;
    },
    trySend: () => (limited && random() < 0.1 ? random() * 3 : 0),
    adjust: (direction, bytes) => void (books.charged[direction] += bytes),
    admit: () => true,
    [Symbol.dispose]() {},
  };
}

export async function chaos({ flows, parallel, seed, backend, limited }: ChaosOptions): Promise<ChaosResult> {
  const random = randomOf(seed);
  const scripts = Array.from({ length: flows }, () => scriptOf(random));
  const books = scripts.map((): Books => ({
    moved: { upload: 0, download: 0 },
    charged: { upload: 0, download: 0 },
  }));
  const faults: string[] = [];
  const onFault = (fault: string): void => void faults.push(fault);
  const arrivals = scripts.map((_, id) => ({
    up: new Arrival(id, onFault),
    down: new Arrival(id, onFault),
  }));
  const timers = new IdleTimers();
  const origin = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.on("error", () => {}); // it may be reset before it has sent its name
    const onReadable = (): void => {
      const header = socket.read(HEADER_BYTES) as Buffer | null;
      if (header === null) return;
      socket.off("readable", onReadable).off("end", onEarlyEnd);
      const id = header.readUInt32BE();
      void play(socket, (scripts[id] as Script).origin, id, (arrivals[id] as { up: Arrival }).up);
    };
    const onEarlyEnd = (): void => void socket.end();
    socket.on("readable", onReadable).on("end", onEarlyEnd);
  });
  const proxy = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true });
  for (const server of [origin, proxy]) {
    server.listen(0, LOOPBACK_V4);
    await once(server, "listening");
  }
  const portOf = (server: typeof origin): number => (server.address() as AddressInfo).port;
  const waiting: ((socket: Socket) => void)[] = [];
  proxy.on("connection", (socket) => waiting.shift()?.(socket));

  const converse = async (id: number): Promise<void> => {
    const script = scripts[id] as Script;
    const own = books[id] as Books;
    const kill = new AbortController();
    const { promise, resolve } = Promise.withResolvers<Socket>();
    waiting.push(resolve);
    const client = connect({ port: portOf(proxy), host: LOOPBACK_V4, allowHalfOpen: true, noDelay: true });
    const near = await promise;
    near.on("error", () => {}); // the pump's business
    const far = await dialTcp(
      { ip: LOOPBACK_V4, port: portOf(origin) },
      { signal: kill.signal, timeoutMs: 20_000, sockets: null },
    ).catch((error: unknown) => {
      for (const socket of [near, client]) socket.destroy(); // or their server never closes, and the fault is never told
      throw error;
    });
    const relayed = relay(near, far, meterOf(own, script, limited, random), {
      signal: kill.signal,
      onBytes: (direction, bytes) => void (own.moved[direction] += bytes),
      timers,
      idleMs: 60_000,
      halfClosedIdleMs: 60_000,
      backend,
    });
    const header = Buffer.alloc(HEADER_BYTES);
    header.writeUInt32BE(id);
    client.write(header);
    const timer = script.killMs === null ? undefined : setTimeout(() => kill.abort(), script.killMs);
    await play(client, script.client, id, (arrivals[id] as { down: Arrival }).down);
    await relayed;
    clearTimeout(timer);
  };
  // The order tells which one was accepted, so connections are opened one at a time.
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < flows) {
      const id = next++;
      await converse(id).catch((error: unknown) => onFault(`flow ${id}: ${String(error)}`));
    }
  };
  await Promise.all(Array.from({ length: parallel }, lane));
  for (const server of [origin, proxy]) {
    server.close();
    await once(server, "close");
  }
  let [whole, bytes] = [0, 0];
  for (const [id, { client, origin: far, killMs }] of scripts.entries()) {
    const { moved, charged } = books[id] as Books;
    const { up, down } = arrivals[id] as { up: Arrival; down: Arrival };
    const isWhole = killMs === null && client.resetsAt === Infinity && far.resetsAt === Infinity;
    bytes += moved.upload + moved.download;
    if (isWhole) {
      whole++;
      const wanted = `${client.bytes + HEADER_BYTES} ${far.bytes} true true`;
      const got = `${moved.upload} ${moved.download} ${up.ended} ${down.ended}`;
      if (got !== wanted) onFault(`flow ${id}: counted ${got} instead of ${wanted}`);
      if (up.bytes !== client.bytes || down.bytes !== far.bytes)
        onFault(`flow ${id}: ${up.bytes} of ${client.bytes} up, ${down.bytes} of ${far.bytes} down`);
    }
    if (up.bytes > moved.upload || down.bytes > moved.download)
      onFault(`flow ${id}: more arrived than was counted`);
    // What is held when a connection is cut off is taken back by the ledger's meter; this one has no such thing.
    if (isWhole || !limited)
      if (charged.upload !== moved.upload || charged.download !== moved.download)
        onFault(`flow ${id}: charged ${JSON.stringify(charged)} for ${JSON.stringify(moved)}`);
  }
  return { whole, bytes, faults };
}
