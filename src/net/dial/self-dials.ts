/**
 * Connections and datagrams that this process sends to its own listeners, by their near end. What comes in from such an
 * end has made one hop more, and after a few it goes no further: a node that is our own listener, a tunnel to itself and
 * chains of them would else go round until there are no descriptors left.
 */
import type { DialContext, Outbound } from "#core/outbound.ts";
import { DialError } from "#core/errors.ts";
import type { Endpoint, Ip, Metadata, Network } from "#core/session.ts";
import type { OwnListeners } from "#net/listen/own-listeners.ts";

/** Listeners that lead to each other in good faith are two or three. */
export const MOST_HOPS = 4;

/** A dial that is to be noted. */
export interface Hop {
  /** The how manieth it is. */
  readonly nth: number;
  /** It leads to a listener of ours, and not elsewhere from where the kernel may bring it here. */
  readonly isHere: boolean;
}

export interface SelfDialsEnv {
  /** Called when `busy` has changed. */
  readonly onBusy?: () => void;
  /** The session for whose client a worker has made this one; null: there is none. */
  readonly madeFor?: (metadata: Metadata) => Metadata | null;
}

interface Note {
  /** By how many of our own connections it has come. */
  hops: number;
  /** The metadata of the first of them, as it came in from outside; null: the core's own connection. */
  origin: Metadata | null;
  /** The outbound whose dial it is, which may put others into it (multiplexing); "": DIRECT. */
  readonly owner: string;
}

export class SelfDials {
  readonly #listeners: OwnListeners;
  readonly #notes = new Map<string, Note>();
  /** Outbounds that dial through another, whose name the notes have: how many there are of each name. */
  readonly #chained = new Map<string, number>();
  /** Nodes of subscriptions come and go: a name goes with the last of them from memory. */
  readonly #gone = new FinalizationRegistry<string>((outbound) => this.#unchain(outbound));
  /** Connections to a listener of ours, and dials of such. */
  #here = 0;
  /** What is captured may come back by any address. */
  #notesAll = false;
  readonly #env: SelfDialsEnv;

  constructor(listeners: OwnListeners, env: SelfDialsEnv = {}) {
    this.#listeners = listeners;
    this.#env = env;
  }

  /**
   * Is any connection of ours to a listener of ours open, or being dialled? Its other end may reach a worker before it is
   * noted here, for the name of the near end is known only once the kernel has connected it. Those that the kernel may
   * bring here come from an address of this machine, and workers ask about these.
   */
  get busy(): boolean {
    return this.#here > 0;
  }

  /** `outbound` dials through another one. */
  chains(outbound: Pick<Outbound, "name">): void {
    this.#chained.set(outbound.name, (this.#chained.get(outbound.name) ?? 0) + 1);
    this.#gone.register(outbound, outbound.name);
  }

  /** How many names of such outbounds are remembered. */
  get chained(): number {
    return this.#chained.size;
  }

  /** From now on every dial is noted, for the kernel redirects connections to us. */
  noteAll(): void {
    this.#notesAll = true;
  }

  /** Would a socket that leads there come to a listener of ours? Then it is not for a worker to dial. */
  leadsHere(network: Network, ip: Ip, port: number): boolean {
    return this.#listeners.has(network, ip, port);
  }

  /** The hop that a dial is; null: it need not be noted. Throws `DialError` where it would be one too many. */
  hop(network: Network, ip: Ip, port: number, metadata: Metadata | null): Hop | null {
    const isHere = this.leadsHere(network, ip, port);
    if (!isHere && !this.#notesAll) return null;
    const nth = 1 + (metadata === null ? 0 : this.#hopsOf(metadata));
    if (nth > MOST_HOPS) throw loop(`${ip} port ${port}`);
    return { nth, isHere };
  }

  /** To be called before a dial that is a hop, and what it answers with to be disposed of when it is noted or has failed. */
  dials({ isHere }: Hop): Disposable {
    if (isHere) this.#change(1);
    return { [Symbol.dispose]: () => void (isHere && this.#change(-1)) };
  }

  #change(by: 1 | -1): void {
    const before = this.busy;
    this.#here += by;
    if (this.busy !== before) this.#env.onBusy?.();
  }

  /** `near` is the local end of a socket whose dial is a hop. Until it is disposed of, which is to happen once. */
  add(network: Network, near: Endpoint, hop: Hop, { metadata }: DialContext, owner: string): Disposable {
    const key = keyOf(network, near);
    const note: Note = { hops: hop.nth, origin: metadata === null ? null : this.originOf(metadata), owner };
    this.#notes.set(key, note);
    const dialling = this.dials(hop);
    return {
      [Symbol.dispose]: () => {
        if (this.#notes.get(key) === note) this.#notes.delete(key);
        dialling[Symbol.dispose]();
      },
    };
  }

  /**
   * A session is about to leave by `outbound`, perhaps inside a connection that another one has opened: that connection
   * then carries what has made this session's hops, and for this session's client. Throws `DialError` behind the last hop,
   * also where a worker is to dial.
   */
  joins(metadata: Metadata, outbound: { readonly name: string; readonly type: string }): void {
    if (this.#notesAll && this.#hopsOf(metadata) >= MOST_HOPS) throw loop(outbound.name);
    if (this.#notes.size === 0 || outbound.type === "Direct") return;
    const hops = 1 + this.#hopsOf(metadata);
    const origin = this.originOf(metadata);
    for (const note of this.#notes.values()) {
      if (note.owner !== outbound.name && !this.#chained.has(outbound.name)) continue;
      if (hops > MOST_HOPS) throw loop(outbound.name);
      note.hops = Math.max(note.hops, hops);
      if (note.origin === null || !this.#listeners.isOwnAddress(origin.source.ip)) note.origin = origin;
    }
  }

  /** As it came in from outside, where it has come by connections of ours since. */
  originOf(metadata: Metadata): Metadata {
    const { last, note } = this.#wayOf(metadata);
    return note?.origin ?? last;
  }

  #unchain(outbound: string): void {
    const left = (this.#chained.get(outbound) ?? 0) - 1;
    if (left > 0) this.#chained.set(outbound, left);
    else this.#chained.delete(outbound);
  }

  #hopsOf(metadata: Metadata): number {
    const { hops, note } = this.#wayOf(metadata);
    return hops + (note?.hops ?? 0);
  }

  /** Back over what workers have made, which has no notes, up to the session that has one or comes from elsewhere. */
  #wayOf(metadata: Metadata): { readonly hops: number; readonly last: Metadata; readonly note: Note | null } {
    for (let [last, hops] = [metadata, 0]; ; hops++) {
      const note = this.#noteOf(last);
      const before = note === null && hops < MOST_HOPS ? (this.#env.madeFor?.(last) ?? null) : null;
      if (before === null) return { hops, last, note };
      last = before;
    }
  }

  #noteOf({ network, source }: Metadata): Note | null {
    if (this.#notes.size === 0 || network === "icmp") return null;
    const note = this.#notes.get(keyOf(network, source));
    return note !== undefined && this.#listeners.isOwnAddress(source.ip) ? note : null;
  }
}

/** A socket for datagrams is bound to no address. */
function keyOf(network: Network, { ip, port }: Endpoint): string {
  return network === "udp" ? `udp ${port}` : `tcp ${port} ${ip}`;
}

function loop(to: string): DialError {
  return new DialError(
    "forbidden",
    `a loop: more than ${MOST_HOPS} hops through weir's own listeners, to ${to}`,
  );
}
