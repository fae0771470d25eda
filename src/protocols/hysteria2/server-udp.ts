/** Datagrams of a client through its hysteria2 connection: a session for each number that it uses. */
import { ProtocolError } from "#core/errors.ts";
import type { DatagramFlow, Destination } from "#core/session.ts";
import { oldestKey, valueAt } from "#lib/at.ts";
import { type ClientFlow, clientFlow } from "#net/udp/udp-clients.ts";
import { type FrameWay, UdpChannel } from "./udp-channel.ts";
import { decodeUdp, type UdpMessage } from "./wire.ts";

/** Of one connection. One more takes the place of the one that was silent the longest. */
const MOST_SESSIONS = 1024;

interface ClientSession {
  readonly channel: UdpChannel;
  /** Null: its first datagram is not whole yet. */
  flow: ClientFlow | null;
}

export class ServerUdp {
  readonly #way: FrameWay;
  readonly #onFlow: (flow: DatagramFlow, first: Destination) => void;
  /** In the order of their last use. */
  readonly #sessions = new Map<number, ClientSession>();
  #youngest: { readonly id: number; readonly session: ClientSession } | null = null;

  /** `onFlow` takes a new flow over, and disposes of it when it is idle. */
  constructor(way: FrameWay, onFlow: (flow: DatagramFlow, first: Destination) => void) {
    this.#way = way;
    this.#onFlow = onFlow;
  }

  /** A frame of the client's; one that cannot be read is dropped, as on any network. */
  take(payload: Uint8Array): void {
    try {
      this.#takeMessage(decodeUdp(payload));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
    }
  }

  #takeMessage(message: UdpMessage): void {
    const id = message.session;
    const session = this.#youngest?.id === id ? this.#youngest.session : this.#renew(id);
    const item = session.channel.take(message);
    if (item === null) return;
    if (session.flow !== null) return session.flow.arrived(item);
    const flow = clientFlow(
      (answer) => session.channel.send(answer),
      () => this.#sessions.get(id) === session && this.#forget(id),
    );
    session.flow = flow;
    flow.arrived(item);
    this.#onFlow(flow.flow, item.destination);
  }

  /** It is the youngest from now on. */
  #renew(id: number): ClientSession {
    const session = this.#sessions.get(id) ?? { channel: new UdpChannel(id, this.#way), flow: null };
    this.#sessions.delete(id);
    if (this.#sessions.size >= MOST_SESSIONS) this.#close(oldestKey(this.#sessions));
    this.#sessions.set(id, session);
    this.#youngest = { id, session };
    return session;
  }

  #forget(id: number): void {
    this.#sessions.delete(id);
    if (this.#youngest?.id === id) this.#youngest = null;
  }

  #close(id: number): void {
    const { flow } = valueAt(this.#sessions, id);
    this.#forget(id);
    flow?.close();
  }

  /** The connection is over. */
  close(): void {
    for (const id of this.#sessions.keys()) this.#close(id);
  }
}
