/** One datagram flow per client source, behind one UDP socket. */
import type { Datagram, DatagramFlow, Destination, Endpoint } from "#core/session.ts";
import { PassingMap } from "#lib/passing-map.ts";
import { endpointText } from "#core/session.ts";
import { WaitingDatagrams } from "./waiting-datagrams.ts";

/** A flow as its feeder sees it: `arrived` brings datagrams in, `close` ends it from below. */
export interface ClientFlow {
  /** The payload is lent until it returns. */
  arrived(item: Datagram): void;
  readonly flow: DatagramFlow;
  close(): void;
}

/** At the bound one more source takes the place of the one that was silent the longest, but not if that is less than this. */
export const SILENT_MS = 10_000;
/** How precise that is. */
const TOUCH_MS = 1_000;

interface Client {
  readonly key: string;
  readonly flow: ClientFlow;
  /** By the clock; of either direction. */
  usedAtMs: number;
}

/**
 * Full cone: all datagrams of one source share a flow. Idle flows are disposed of by their taker; at the bound the flow
 * that has been silent longest is displaced, or a datagram of a new source is dropped.
 */
export class UdpClients<Item extends Datagram = Datagram> {
  /** In the order of their last use, more or less. */
  readonly #clients = new PassingMap<string, Client>();
  readonly #maxSources: number;
  // Most datagrams come from the source of the one before, which is the same object then.
  #lastSource: Endpoint | null = null;
  #last: Client | null = null;
  /** No flow is displaced before this time. */
  #fullUntilMs = 0;
  readonly #open: (source: Endpoint, flow: DatagramFlow, first: Item) => void;
  readonly #send: (item: Datagram, source: Endpoint) => void;
  readonly #now: () => number;

  /**
   * `open` takes a new flow over (its `receive` may be called there or later); `send` puts a datagram on the way to
   * `source` and never waits.
   */
  constructor(
    maxSources: number,
    open: (source: Endpoint, flow: DatagramFlow, first: Item) => void,
    send: (item: Datagram, source: Endpoint) => void,
    now = (): number => performance.now(),
  ) {
    this.#maxSources = maxSources;
    this.#open = open;
    this.#send = send;
    this.#now = now;
  }

  get size(): number {
    return this.#clients.size;
  }

  /** Both are lent until it returns, but for `source`, which is kept. */
  deliver(source: Endpoint, item: Item): void {
    if (source === this.#lastSource && this.#last !== null) return this.#last.flow.arrived(item);
    const key = endpointText(source);
    const known = this.#clients.get(key);
    const nowMs = this.#now();
    if (this.#last !== null) this.#touch(this.#last, nowMs); // it was spared until now
    if (known !== undefined) {
      this.#touch(known, nowMs);
      this.#lastSource = source;
      this.#last = known;
      return known.flow.arrived(item);
    }
    if (!this.#hasRoom(nowMs)) return;
    const flow = clientFlow(
      (reply) => {
        this.#touch(client, this.#now());
        this.#send(reply, source);
      },
      () => {
        this.#clients.delete(key);
        this.#last = null;
      },
    );
    const client: Client = { key, flow, usedAtMs: nowMs };
    this.#clients.set(key, client);
    flow.arrived(item);
    this.#open(source, flow.flow, item);
  }

  #touch(client: Client, nowMs: number): void {
    if (nowMs - client.usedAtMs < TOUCH_MS || !this.#clients.delete(client.key)) return;
    client.usedAtMs = nowMs;
    this.#clients.set(client.key, client);
  }

  #hasRoom(nowMs: number): boolean {
    if (this.#clients.size < this.#maxSources) return true;
    if (nowMs < this.#fullUntilMs) return false;
    const oldest: Client = this.#clients.values().next().value;
    this.#fullUntilMs = oldest.usedAtMs + SILENT_MS;
    if (nowMs < this.#fullUntilMs) return false;
    oldest.flow.close();
    return true;
  }

  /** Ends every flow: the socket behind them is gone. */
  close(): void {
    for (const { flow } of this.#clients.values()) flow.close();
  }
}

/** `send` queues a reply; `onClose` runs once, at the first close from either side; `refuse` is the flow's. */
export function clientFlow(
  send: (item: Datagram) => void,
  onClose: () => void,
  refuse?: (destination: Destination) => void,
): ClientFlow {
  const waiting = new WaitingDatagrams(); // for `receive`
  let receiver: ((item: Datagram) => void) | null = null;
  let open = true;
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const close = (): void => {
    if (!open) return;
    open = false;
    waiting.take();
    onClose();
    resolve();
  };
  return {
    arrived(item) {
      if (!open) return;
      if (receiver !== null) receiver(item);
      else waiting.push(item);
    },
    close,
    flow: {
      send: (item) => void (open && send(item)),
      receive(on) {
        receiver = on;
        for (const item of waiting.take()) on(item);
      },
      closed,
      ...(refuse === undefined ? {} : { refuse }),
      [Symbol.asyncDispose]: async () => close(),
    },
  };
}
