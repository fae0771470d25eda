import type { Datagram, DatagramFlow, Destination } from "#core/session.ts";
import { destinationText } from "#core/session.ts";
import { oldestKey } from "#lib/at.ts";
import type { CoolClient, CoolPackets } from "./cool-client.ts";

/** Destinations of one flow; a further one takes the place of the one that was used first. */
const MAX_DESTINATIONS = 64;
/** Datagrams that wait for a receiver; beyond, they are dropped. */
const MAX_EARLY = 64;

/** Datagrams to any destination: a sub-session of mux.cool has one destination, so each destination gets its own. */
export class CoolFlow implements DatagramFlow {
  readonly closed: Promise<void>;
  readonly #session: CoolClient;
  readonly #open = new Map<string, CoolPackets>();
  readonly #settle: () => void;
  #on: ((item: Datagram) => void) | null = null;
  #early: Datagram[] = [];
  #ended = false;

  constructor(session: CoolClient, first: Destination) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#settle = resolve;
    this.#session = session;
    this.#start(destinationText(first), first);
  }

  send({ payload, destination }: Datagram): void {
    if (this.#ended) return;
    const key = destinationText(destination);
    const known = this.#open.get(key);
    if (known !== undefined) known.send(payload);
    else if (this.#session.usable) this.#start(key, destination).send(payload);
    else if (this.#open.size === 0) this.#end();
  }

  receive(on: (item: Datagram) => void): void {
    this.#on = on;
    for (const item of this.#early.splice(0)) on(item);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end();
  }

  #start(key: string, destination: Destination): CoolPackets {
    if (this.#open.size >= MAX_DESTINATIONS) this.#close(oldestKey(this.#open));
    const packets = this.#session.openPackets(destination, {
      onPacket: (payload, from) => this.#arrived({ payload, destination: from ?? destination }),
      onEnd: () => {
        this.#open.delete(key);
        if (!this.#session.usable && this.#open.size === 0) this.#end();
      },
    });
    this.#open.set(key, packets);
    return packets;
  }

  #close(key: string): void {
    const packets = this.#open.get(key);
    this.#open.delete(key);
    packets?.close();
  }

  #arrived(item: Datagram): void {
    if (this.#on !== null) this.#on(item);
    else if (this.#early.length < MAX_EARLY) this.#early.push(item);
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const key of this.#open.keys()) this.#close(key);
    this.#settle();
  }
}
