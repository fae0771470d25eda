/**
 * Two QUIC connections and the network between them, in one process and on a clock of its own: delay, jitter, loss, doubles,
 * damage, a rate and a queue, all by a seeded generator, so that each run can be repeated.
 */
import assert from "node:assert/strict";
import type { Endpoint } from "#core/session.ts";
import { quicLibrary } from "#platform/quic.ts";
import { Connection } from "#transport/quic/connection.ts";
import type { ConnectionEvents, ConnectionOptions, ServerStart } from "#transport/quic/connection-options.ts";
import type { Path } from "#transport/quic/path.ts";
import { CE, ECT0, ECT1 } from "#transport/quic/recovery/ecn-counts.ts";
import { Cubic } from "#transport/quic/congestion/cubic.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { readHeader } from "#transport/quic/wire/header.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import { openQuicClientTls, openQuicServerTls } from "./quic-tls.ts";

/** Behind the ids of a long header: a first packet with another id would be another connection. */
const FIRST_DAMAGED = 24;

/** Datagrams that have arrived are forgotten so many at a time. */
const MOST_KEPT = 4096;
/** Without the clock moving: more means that a connection asks to be called again and again. */
const MOST_TURNS = 10_000;

export interface LinkOptions {
  readonly delayMs: number;
  readonly jitterMs?: number;
  /** Shares of the datagrams, 0 to 1. */
  readonly loss?: number;
  readonly doubled?: number;
  readonly damaged?: number;
  /** Bytes a millisecond, and how many wait for it; absent: no bound. */
  readonly rate?: number;
  readonly queueBytes?: number;
  /** Longer datagrams are lost. */
  readonly mtu?: number;
  /** With so many bytes waiting, a datagram with ECT(0) is marked as one that met congestion. */
  readonly marksAbove?: number;
  /** What the way does with marks: nothing, takes them off, makes ECT(1) of them, drops what has one, or marks all. */
  readonly marks?: "cleared" | "ect1" | "dropped" | "ce";
}

interface Flight {
  readonly atMs: number;
  readonly from: Endpoint | null;
  readonly to: NetworkPeer;
  readonly datagram: Uint8Array;
  readonly ecn: number;
}

/** Small, seeded, good enough for schedules. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class NetworkPeer {
  connection: Connection | null = null;
  /** Of the accepting side: makes the connection from the first datagram; null: that is none. */
  accept: (datagram: Uint8Array, from: Endpoint | null) => Connection | null = () => null;
  /** Where its datagrams come from, as the other side sees it; null: there is one path alone. */
  address: Endpoint | null = null;
  isDirty = false;
  isConnected = false;
  closed: Error | null | undefined;
  sentDatagrams = 0;
  sentBytes = 0;
  readonly datagrams: Buffer[] = [];
  onStream: (stream: QuicStream) => void = (stream) => stream.destroy();
  onConnected: () => void = () => {};
  readonly events: ConnectionEvents;

  constructor(sendOne: (datagram: Uint8Array, isMarked: boolean) => void) {
    const send = (datagram: Uint8Array, { isMarked }: Path): void => {
      this.sentDatagrams++;
      this.sentBytes += datagram.length;
      sendOne(datagram, isMarked);
    };
    this.events = {
      send,
      sendRun: (datagrams, size, path) => {
        for (let at = 0; at < datagrams.length; at += size) send(datagrams.subarray(at, at + size), path);
      },
      wake: () => void (this.isDirty = true),
      connected: () => {
        this.isConnected = true;
        this.onConnected();
      },
      stream: (stream) => this.onStream(stream),
      datagram: (payload) => void this.datagrams.push(Buffer.from(payload)),
      idle() {},
      ownId: () => {},
      moved() {},
      closed: (error) => void (this.closed = error),
    };
  }

  get made(): Connection {
    assert.ok(this.connection !== null, "there is no connection yet");
    return this.connection;
  }
}

export interface NetworkOptions {
  readonly seed?: number;
  readonly up: LinkOptions;
  readonly down: LinkOptions;
  readonly client?: Partial<ConnectionOptions>;
  readonly server?: Partial<ConnectionOptions>;
  readonly isValidated?: boolean;
}

interface Sides {
  readonly client: ConnectionOptions;
  readonly server: ConnectionOptions;
}

async function sidesOf({ client, server }: Pick<NetworkOptions, "client" | "server">): Promise<Sides> {
  const ciphers = quicLibrary()?.ciphers ?? null;
  assert.ok(ciphers !== null);
  const common = (): Pick<ConnectionOptions, "ciphers" | "congestion"> => ({
    ciphers,
    congestion: new Cubic(),
  });
  return {
    client: { openTls: await openQuicClientTls(), ...common(), ...client },
    server: { openTls: openQuicServerTls(), ...common(), ...server },
  };
}

export class QuicNetwork {
  nowMs = 0;
  readonly client: NetworkPeer;
  readonly server: NetworkPeer;
  readonly random: () => number;
  /** Links as they are now. */
  up: LinkOptions;
  down: LinkOptions;
  readonly #isValidated: boolean;
  readonly #peers: NetworkPeer[] = [];
  readonly #flights: Flight[] = [];
  /** Those before it have arrived. */
  #arrived = 0;
  readonly #freeAt = { up: 0, down: 0 };
  dropped = 0;

  static async open(options: NetworkOptions): Promise<QuicNetwork> {
    return new QuicNetwork(options, await sidesOf(options));
  }

  constructor(options: NetworkOptions, sides: Sides) {
    this.#isValidated = options.isValidated ?? false;
    this.random = seededRandom(options.seed ?? 1);
    this.up = options.up;
    this.down = options.down;
    [this.client, this.server] = this.#join(sides);
  }

  /** Two more peers, whose datagrams share rate and queue of the same links. */
  async join(
    options: Pick<NetworkOptions, "client" | "server">,
  ): Promise<{ readonly client: NetworkPeer; readonly server: NetworkPeer }> {
    const [client, server] = this.#join(await sidesOf(options));
    return { client, server };
  }

  #join(sides: Sides): readonly [NetworkPeer, NetworkPeer] {
    const client: NetworkPeer = new NetworkPeer((datagram, isMarked) =>
      this.#launch("up", client.address, server, { datagram, ecn: isMarked ? ECT0 : 0 }),
    );
    const server: NetworkPeer = new NetworkPeer((datagram, isMarked) =>
      this.#launch("down", server.address, client, { datagram, ecn: isMarked ? ECT0 : 0 }),
    );
    server.accept = (datagram, from) => this.#accept(datagram, from, sides.server, server);
    client.connection = new Connection(sides.client, client.events, null, this.nowMs);
    client.connection.begin();
    client.isDirty = true;
    this.#peers.push(client, server);
    return [client, server];
  }

  #launch(
    way: "up" | "down",
    from: Endpoint | null,
    to: NetworkPeer,
    { datagram, ecn: sentEcn }: Pick<Flight, "datagram" | "ecn">,
  ): void {
    const link = this[way];
    const { delayMs, jitterMs = 0, loss = 0, doubled = 0, damaged = 0, rate = Infinity } = link;
    const { queueBytes = Infinity, mtu = Infinity } = link;
    const waitMs = Math.max(0, this.#freeAt[way] - this.nowMs);
    const ecn = markOf(link, sentEcn, waitMs * rate);
    if (ecn === null || this.random() < loss || datagram.length > mtu || waitMs * rate > queueBytes) {
      this.dropped++;
      return;
    }
    this.#freeAt[way] = this.nowMs + waitMs + datagram.length / rate;
    const copies = this.random() < doubled ? 2 : 1;
    for (let copy = 0; copy < copies; copy++) {
      const bytes = new Uint8Array(datagram);
      if (this.random() < damaged)
        flip(bytes, FIRST_DAMAGED + Math.floor(this.random() * 1000), 1 + Math.floor(this.random() * 255));
      const atMs = this.#freeAt[way] + delayMs + this.random() * jitterMs;
      this.#insert({ atMs, from, to, datagram: bytes, ecn });
    }
  }

  #insert(flight: Flight): void {
    let place = this.#flights.length;
    while (place > this.#arrived && (this.#flights[place - 1]?.atMs ?? 0) > flight.atMs) place--;
    if (place === this.#flights.length) this.#flights.push(flight);
    else this.#flights.splice(place, 0, flight);
  }

  #accept(
    datagram: Uint8Array,
    from: Endpoint | null,
    options: ConnectionOptions,
    server: NetworkPeer,
  ): Connection | null {
    try {
      const { destination, source, type } = readHeader(new WireReader().reset(datagram));
      if (type !== 0 || datagram.length < 1200) return null;
      const start: ServerStart = {
        original: new Uint8Array(destination),
        client: new Uint8Array(source),
        from,
        isValidated: this.#isValidated,
        retrySource: null,
        resetTokenOf: () => new Uint8Array(16),
      };
      return new Connection(options, server.events, start, this.nowMs);
    } catch {
      return null; // damaged on the way
    }
  }

  /** Until `isDone`; throws where nothing is due any more, or that takes longer than `mostMs` of the network's clock. */
  async run(isDone: () => boolean, mostMs = 600_000): Promise<void> {
    const endMs = this.nowMs + mostMs;
    for (let still = 0, lastMs = -1; ; still = this.nowMs === lastMs ? still + 1 : 0) {
      lastMs = this.nowMs;
      assert.ok(still < MOST_TURNS, "the clock stands still");
      await new Promise<void>((resolve) => process.nextTick(resolve));
      for (const peer of this.#peers) {
        if (!peer.isDirty || peer.connection === null) continue;
        peer.isDirty = peer.connection.flush(this.nowMs);
      }
      if (isDone()) return;
      if (this.#peers.some(({ isDirty }) => isDirty)) continue;
      const nextMs = Math.min(this.#flights[this.#arrived]?.atMs ?? Infinity, ...this.#deadlines());
      if (nextMs === Infinity || nextMs > endMs) {
        const why = nextMs === Infinity ? "nothing is due" : `not done after ${mostMs} ms`;
        assert.fail(`${why}; client: ${this.client.closed}, server: ${this.server.closed}`);
      }
      this.nowMs = Math.max(this.nowMs, nextMs);
      this.#step();
    }
  }

  #deadlines(): number[] {
    return this.#peers.map(({ connection }) => connection?.deadlineMs ?? Infinity);
  }

  /** The next datagram that arrives now; null: none does. */
  #next(): Flight | null {
    const flight = this.#flights[this.#arrived];
    if (flight === undefined || flight.atMs > this.nowMs) return null;
    if (++this.#arrived === MOST_KEPT) {
      this.#flights.splice(0, MOST_KEPT);
      this.#arrived = 0;
    }
    return flight;
  }

  #step(): void {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const { from, to, datagram, ecn } = next;
      to.connection ??= to.accept(datagram, from);
      to.connection?.receive(datagram, this.nowMs, from, ecn);
      to.isDirty = true;
    }
    for (const peer of this.#peers) {
      if (peer.connection === null || peer.connection.deadlineMs > this.nowMs) continue;
      peer.connection.onTimer(this.nowMs);
      peer.isDirty = true;
    }
  }
}

/** What a datagram with this mark arrives with, behind so many bytes; null: it does not. */
function markOf({ marks, marksAbove = Infinity }: LinkOptions, sent: number, waiting: number): number | null {
  if (sent === 0 || marks === "cleared") return 0;
  if (marks === "dropped") return null;
  if (marks === "ect1") return ECT1;
  return marks === "ce" || waiting > marksAbove ? CE : sent;
}

function flip(bytes: Uint8Array, at: number, bits: number): void {
  if (at < bytes.length) bytes[at] = (bytes[at] ?? 0) ^ bits;
}
