/** Datagrams through one hysteria2 connection: a number for each client's flow, and fragments of what is too long for a frame. */
import { ProtocolError } from "#core/errors.ts";
import type { Datagram, DatagramFlow } from "#core/session.ts";
import { destinationText } from "#core/session.ts";
import { decodeUdp, encodeUdp, parseAddress, udpHeadBytes, type UdpMessage } from "./wire.ts";

/** A datagram of the client's has at most so many bytes; peers refuse longer ones. */
const MOST_PAYLOAD_BYTES = 4096;
const MOST_FRAGMENTS = 255;

/** The way that frames take. */
export interface FrameWay {
  /** The longest frame at the moment. */
  readonly mostBytes: number;
  /** Keeps the payload. */
  send(payload: Uint8Array): void;
}

export class UdpSessions {
  readonly #way: FrameWay;
  readonly #flows = new Map<number, UdpFlow>();
  #next = 1;

  constructor(way: FrameWay) {
    this.#way = way;
  }

  open(): DatagramFlow {
    while (this.#flows.has(this.#next)) this.#next = (this.#next + 1) >>> 0;
    const id = this.#next;
    this.#next = (this.#next + 1) >>> 0;
    const flow = new UdpFlow(id, this.#way, () => this.#flows.delete(id));
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
  readonly #id: number;
  readonly #way: FrameWay;
  readonly #settle: () => void;
  #packet = 0;
  #on: (item: Datagram) => void = () => {};
  /** Fragments of the only packet that is put together. */
  #partial: { packet: number; pieces: (Uint8Array | null)[]; missing: number } | null = null;

  constructor(id: number, way: FrameWay, forget: () => void) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    this.#id = id;
    this.#way = way;
    this.#settle = () => {
      forget();
      resolve();
    };
  }

  receive(on: (item: Datagram) => void): void {
    this.#on = on;
  }

  send({ payload, destination }: Datagram): void {
    if (payload.length > MOST_PAYLOAD_BYTES) return;
    const address = destinationText(destination);
    const room = this.#way.mostBytes - udpHeadBytes(address);
    const fragments = Math.max(1, Math.ceil(payload.length / room));
    if (room <= 0 || fragments > MOST_FRAGMENTS) return;
    this.#packet = (this.#packet % 0xffff) + 1;
    const common = { session: this.#id, packet: this.#packet, fragments, address };
    for (let fragment = 0; fragment < fragments; fragment++) {
      const data = payload.subarray(fragment * room, (fragment + 1) * room);
      this.#way.send(encodeUdp({ ...common, fragment, data }));
    }
  }

  take(message: UdpMessage): void {
    const payload = message.fragments === 1 ? message.data : this.#join(message);
    const destination = payload === null ? null : parseAddress(message.address);
    if (payload !== null && destination !== null) this.#on({ payload, destination });
  }

  #join({ packet, fragment, fragments, data }: UdpMessage): Uint8Array | null {
    if (this.#partial?.packet !== packet || this.#partial.pieces.length !== fragments)
      this.#partial = { packet, pieces: Array.from({ length: fragments }, () => null), missing: fragments };
    const { pieces } = this.#partial;
    if (pieces[fragment] !== null) return null;
    pieces[fragment] = new Uint8Array(data);
    if (--this.#partial.missing > 0) return null;
    this.#partial = null;
    const whole = Buffer.concat(pieces.filter((piece) => piece !== null));
    return whole.length > MOST_PAYLOAD_BYTES ? null : whole;
  }

  close(): void {
    this.#settle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#settle();
  }
}
