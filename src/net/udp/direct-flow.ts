/** Datagrams straight to their destinations: one unconnected socket per family, opened when first needed. */
import { createSocket } from "node:dgram";
import { ABORTED } from "#core/errors.ts";
import type { DialContext } from "#core/outbound.ts";
import type { Reach } from "#core/reach.ts";
import type { Resolver } from "#core/resolver.ts";
import type { Datagram, DatagramFlow, Destination, Endpoint, Ip } from "#core/session.ts";
import type { SocketMaker } from "#platform/socket-maker.ts";
import { addressesOf, allows } from "#net/address/families.ts";
import type { Families } from "#net/address/families.ts";
import { oldestKey } from "#lib/at.ts";
import { BUFFERS, type DatagramSocket, type DatagramSockets } from "./datagram-socket.ts";
import { ANY_V4, familyOf } from "#net/address/ip.ts";
import type { Hop, SelfDials } from "#net/dial/self-dials.ts";
import { WaitingDatagrams } from "./waiting-datagrams.ts";

export interface DirectFlowOptions {
  readonly resolver: Resolver;
  readonly families: Families;
  /** A name that came with an address is looked up all the same. */
  readonly resolvesAnew: boolean;
  readonly sockets: SocketMaker | null;
  readonly datagrams: DatagramSockets;
  /** Null: datagrams may go anywhere. */
  readonly reach: Reach | null;
  /** Null: what leads to our own listeners is not noted. */
  readonly noted: {
    readonly selfDials: SelfDials;
    readonly context: DialContext;
    readonly owner: string;
  } | null;
}

const ECT0 = 2;
/** Names of one flow that are remembered; the oldest goes first. */
const MAX_NAMES = 64;
/** How long an answer is used without asking the resolver again, which has a cache of its own. */
const NAME_MS = 30_000;
/** A name without an address is not asked for again for this long; its datagrams are dropped. */
const FAILED_NAME_MS = 2_000;

interface Name {
  ip: Ip | null;
  untilMs: number;
  /** For its address; null: the look-up is done. */
  waiting: WaitingDatagrams | null;
}

/** Full cone: any host may send to one of the two ports. A reply carries the name that was resolved to its address. */
export class DirectFlow implements DatagramFlow {
  readonly closed: Promise<void>;
  readonly #close: () => void;
  readonly #options: DirectFlowOptions;
  readonly #names = new Map<string, Name>();
  /** The name last resolved to an address, by which replies are attributed. */
  readonly #hosts = new Map<Ip, string>();
  readonly #abort = new AbortController();
  // Most replies come from the same peer as the one before.
  #lastFrom: Endpoint | null = null;
  #lastName: Destination = { host: null, ip: null, port: 0 };
  #reached: Endpoint | null = null;
  /** Null: what it leads to need not be noted. */
  #hop: Hop | null = null;
  #usesEcn = false;
  /** By the local port. */
  readonly #notes = new Map<number, Disposable>();
  #v4: DatagramSocket | null = null;
  #v6: DatagramSocket | null = null;
  #on: (item: Datagram) => void = () => {};

  constructor(options: DirectFlowOptions) {
    this.#options = options;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#close = resolve;
  }

  get localPorts(): readonly number[] {
    return [this.#v4, this.#v6].flatMap((socket) => (socket === null ? [] : socket.port));
  }

  receive(on: (item: Datagram) => void): void {
    this.#on = on;
  }

  send(item: Datagram): void {
    const { host, ip, port } = item.destination;
    const { families, resolvesAnew } = this.#options;
    if (this.#abort.signal.aborted) return;
    const isKnown = ip !== null && (host === null || !resolvesAnew);
    if (isKnown && allows(families, familyOf(ip))) this.#sendTo(ip, port, item);
    else if (host !== null) this.#sendByName(host, item);
  }

  useEcn(): boolean {
    this.#usesEcn = true;
    for (const socket of [this.#v4, this.#v6]) socket?.useEcn();
    return true; // a socket that cannot sends without
  }

  sendRun({ payload, destination, ecn }: Datagram, size: number): void {
    const { host, ip, port } = destination;
    const { families, resolvesAnew } = this.#options;
    const isKnown = ip !== null && (host === null || !resolvesAnew);
    if (isKnown && allows(families, familyOf(ip))) {
      if (!this.#abort.signal.aborted)
        this.#socketTo(ip, port)?.sendRun(payload, size, ip, port, ecn === ECT0);
    } else
      for (let at = 0; at < payload.length; at += size)
        this.send({ payload: payload.subarray(at, at + size), destination });
  }

  #sendByName(host: string, item: Datagram): void {
    const known = this.#names.get(host);
    if (known !== undefined && known.waiting !== null) {
      known.waiting.push(item);
    } else if (known !== undefined && known.untilMs > performance.now()) {
      if (known.ip !== null) this.#sendTo(known.ip, item.destination.port, item);
    } else void this.#lookUp(host, item);
  }

  async #lookUp(host: string, first: Datagram): Promise<void> {
    const name: Name = { ip: null, untilMs: 0, waiting: new WaitingDatagrams() };
    name.waiting?.push(first);
    this.#names.delete(host); // so that it becomes the youngest
    if (this.#names.size >= MAX_NAMES) this.#names.delete(oldestKey(this.#names));
    if (this.#hosts.size >= MAX_NAMES) this.#hosts.delete(oldestKey(this.#hosts));
    this.#names.set(host, name);
    const wanted: Destination = { host, ip: null, port: first.destination.port };
    const { resolver, families } = this.#options;
    try {
      const found = await addressesOf(wanted, resolver, families, this.#abort.signal);
      name.ip = found.find((ip) => this.#mayReach(ip, wanted.port)) ?? null;
    } catch {
      name.ip = null; // a datagram has no reply for faults: it is lost, as on any network
    }
    name.untilMs = performance.now() + (name.ip === null ? FAILED_NAME_MS : NAME_MS);
    const waiting = name.waiting?.take() ?? [];
    name.waiting = null;
    if (name.ip === null || this.#abort.signal.aborted) return;
    this.#hosts.set(name.ip, host);
    this.#lastFrom = null;
    for (const item of waiting) this.#sendTo(name.ip, item.destination.port, item);
  }

  #sendTo(ip: Ip, port: number, { payload, ecn }: Datagram): void {
    this.#socketTo(ip, port)?.send(null, payload, ip, port, ecn === ECT0);
  }

  /** Null: nothing may go there, or the system refuses a socket. */
  #socketTo(ip: Ip, port: number): DatagramSocket | null {
    if (port === 0 || !this.#mayReach(ip, port)) return null; // port 0: the kernel would refuse it
    const socket = familyOf(ip) === 4 ? (this.#v4 ??= this.#open(4)) : (this.#v6 ??= this.#open(6));
    if (this.#hop !== null && socket !== null) this.#note(socket, this.#hop);
    return socket;
  }

  /** Most datagrams go to the address of the one before, which is not looked at again. */
  #mayReach(ip: Ip, port: number): boolean {
    const { reach, noted } = this.#options;
    if (ip === this.#reached?.ip && port === this.#reached.port) return true;
    if (reach !== null && reach.refusal("udp", ip, port) !== null) return false;
    try {
      if (noted !== null && this.#isOther(noted.selfDials, ip, port)) {
        this.#hop = noted.selfDials.hop("udp", ip, port, noted.context.metadata);
        this.#dropNotes();
      }
    } catch {
      return false; // a loop
    }
    this.#reached = { ip, port };
    return true;
  }

  /** Is it another hop than what the sockets are noted as? */
  #isOther(selfDials: SelfDials, ip: Ip, port: number): boolean {
    return this.#hop === null || (!this.#hop.isHere && selfDials.leadsHere("udp", ip, port));
  }

  #dropNotes(): void {
    for (const note of this.#notes.values()) note[Symbol.dispose]();
    this.#notes.clear();
  }

  /** Before its first datagram leaves. */
  #note({ port }: DatagramSocket, hop: Hop): void {
    const { noted } = this.#options;
    if (noted === null || this.#notes.has(port)) return;
    const { selfDials, context, owner } = noted;
    this.#notes.set(port, selfDials.add("udp", { ip: ANY_V4, port }, hop, context, owner));
  }

  /** Null where the system refuses a socket; the next datagram tries again. */
  #open(family: 4 | 6): DatagramSocket | null {
    const { sockets } = this.#options;
    try {
      return this.#bound(family, sockets === null ? null : sockets.udp(family));
    } catch {
      return null; // out of descriptors, or no such interface: this datagram is lost
    }
  }

  #bound(family: 4 | 6, fd: number | null): DatagramSocket | null {
    const socket = createSocket({
      type: family === 4 ? "udp4" : "udp6",
      ipv6Only: family === 6,
      ...BUFFERS,
      // Addresses are always literal; the runtime's own look-up would cost a turn of the loop per datagram.
      lookup: (address, _, callback) => callback(null, address, family),
    });
    // A send that failed (no route, too large) is a lost datagram and says nothing about the next one.
    socket.on("error", () => {});
    let listening = false;
    socket.once("listening", () => (listening = true)); // comes before bind returns: nothing is left to look up
    try {
      socket.bind(fd === null ? { port: 0, exclusive: true } : { fd, exclusive: true });
    } finally {
      if (!listening) {
        socket.close();
        if (fd !== null) this.#options.sockets?.discard(fd);
      }
    }
    if (!listening) return null;
    const bound = this.#options.datagrams.take(socket, (payload, from, ecn) =>
      this.#on({ payload, destination: from === this.#lastFrom ? this.#lastName : this.#nameOf(from), ecn }),
    );
    if (this.#usesEcn) bound.useEcn();
    bound.begin();
    return bound;
  }

  #nameOf(from: Endpoint): Destination {
    const { ip, port } = from;
    this.#lastFrom = from;
    return (this.#lastName = { host: this.#hosts.get(ip) ?? null, ip, port });
  }

  [Symbol.asyncDispose](): Promise<void> {
    if (!this.#abort.signal.aborted) {
      this.#abort.abort(ABORTED);
      this.#dropNotes();
      this.#v4?.close();
      this.#v6?.close();
      this.#close();
    }
    return this.closed;
  }
}
