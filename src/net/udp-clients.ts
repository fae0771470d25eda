/** One datagram flow per client source, behind one UDP socket. */
import type { Socket } from "node:dgram";
import type { Datagram, DatagramFlow, Destination, Endpoint } from "#core/session.ts";
import { endpointText } from "#core/session.ts";
import { WaitingDatagrams } from "./waiting-datagrams.ts";

/** A flow as its feeder sees it: `arrived` brings datagrams in, `close` ends it from below. */
export interface ClientFlow {
  /** The payload is lent until it returns. */
  arrived(item: Datagram): void;
  readonly flow: DatagramFlow;
  close(): void;
}

/**
 * Full cone: all datagrams of one source share a flow. Idle flows are disposed of by whoever took them; at the bound a
 * datagram of a new source is dropped.
 */
export class UdpClients<Item extends Datagram = Datagram> {
  readonly #flows = new Map<string, ClientFlow>();
  readonly #maxSources: number;
  // Most datagrams come from the source of the one before, which is the same object then.
  #lastSource: Endpoint | null = null;
  #lastFlow: ClientFlow | null = null;
  readonly #open: (source: Endpoint, flow: DatagramFlow, first: Item) => void;
  readonly #send: (item: Datagram, source: Endpoint) => void;

  /**
   * `open` takes a new flow over (its `receive` may be called there or later); `send` puts a datagram on the way to
   * `source` and never waits.
   */
  constructor(
    maxSources: number,
    open: (source: Endpoint, flow: DatagramFlow, first: Item) => void,
    send: (item: Datagram, source: Endpoint) => void,
  ) {
    this.#maxSources = maxSources;
    this.#open = open;
    this.#send = send;
  }

  get size(): number {
    return this.#flows.size;
  }

  /** Both are lent until it returns, but for `source`, which is kept. */
  deliver(source: Endpoint, item: Item): void {
    if (source === this.#lastSource && this.#lastFlow !== null) return this.#lastFlow.arrived(item);
    const key = endpointText(source);
    const known = this.#flows.get(key);
    if (known !== undefined) {
      this.#lastSource = source;
      this.#lastFlow = known;
      return known.arrived(item);
    }
    if (this.#flows.size >= this.#maxSources) return;
    const made = clientFlow(
      (reply) => this.#send(reply, source),
      () => {
        this.#flows.delete(key);
        this.#lastFlow = null;
      },
    );
    this.#flows.set(key, made);
    made.arrived(item);
    this.#open(source, made.flow, item);
  }

  /** Ends every flow: the socket behind them is gone. */
  close(): void {
    for (const flow of this.#flows.values()) flow.close();
  }
}

/** `send` puts a reply on its way; `onClose` runs once, whoever closes; `refuse` is the flow's. */
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

/** Bytes that wait in the process for a full socket; beyond it replies are dropped. */
const MAX_QUEUED_BYTES = 1024 * 1024;

/** Sends a copy of `payload`; never waits, drops where the socket is full. */
export function replyThrough(socket: Socket, payload: Uint8Array, { ip, port }: Endpoint): void {
  if (socket.getSendQueueSize() > MAX_QUEUED_BYTES) return;
  // A dual-stack socket knows an IPv4 client by its mapped address only.
  const mapped = !ip.includes(":") && socket.address().family === "IPv6";
  socket.send(Buffer.from(payload), port, mapped ? `::ffff:${ip}` : ip, ignore);
}

/** With a callback an error of one datagram (too long, unreachable) does not become an event. */
function ignore(): void {}
