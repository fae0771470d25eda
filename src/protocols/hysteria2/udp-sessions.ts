/** Datagrams of a node through its hysteria2 connection: a number for each client's flow. */
import { ProtocolError } from "#core/errors.ts";
import type { Datagram, DatagramFlow } from "#core/session.ts";
import { type FrameWay, UdpChannel } from "./udp-channel.ts";
import { decodeUdp, type UdpMessage } from "./wire.ts";

export interface SessionsWay extends FrameWay {
  /** A flow has ended. */
  ended(): void;
}

export class UdpSessions {
  readonly #way: SessionsWay;
  readonly #flows = new Map<number, UdpFlow>();
  #next = 1;

  constructor(way: SessionsWay) {
    this.#way = way;
  }

  open(): DatagramFlow {
    while (this.#flows.has(this.#next)) this.#next = (this.#next + 1) >>> 0;
    const id = this.#next;
    this.#next = (this.#next + 1) >>> 0;
    const flow = new UdpFlow(new UdpChannel(id, this.#way), () => {
      this.#flows.delete(id);
      this.#way.ended();
    });
    this.#flows.set(id, flow);
    return flow;
  }

  get isEmpty(): boolean {
    return this.#flows.size === 0;
  }

  /** A frame of the server's; one that cannot be read is dropped, as on any network. */
  take(payload: Uint8Array): void {
    try {
      const message = decodeUdp(payload);
      this.#flows.get(message.session)?.take(message);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
    }
  }

  /** The connection is over. */
  close(): void {
    for (const flow of this.#flows.values()) flow.close();
  }
}

class UdpFlow implements DatagramFlow {
  readonly closed: Promise<void>;
  readonly #channel: UdpChannel;
  readonly #settle: () => void;
  #on: (item: Datagram) => void = () => {};

  constructor(channel: UdpChannel, forget: () => void) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#channel = channel;
    this.#settle = () => {
      forget();
      resolve();
    };
  }

  receive(on: (item: Datagram) => void): void {
    this.#on = on;
  }

  send(item: Datagram): void {
    this.#channel.send(item);
  }

  take(message: UdpMessage): void {
    const item = this.#channel.take(message);
    if (item !== null) this.#on(item);
  }

  close(): void {
    this.#settle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#settle();
  }
}
