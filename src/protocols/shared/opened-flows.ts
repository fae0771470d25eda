/** The flows of datagrams that a node has opened in one connection to its server: each has an id, and a channel. */
import { DialError, ProtocolError } from "#core/errors.ts";
import type { Datagram, DatagramFlow } from "#core/session.ts";
import type { FlowChannel } from "./flow-channel.ts";

export interface OpenedFlowsOptions<Message> {
  /** For error texts. */
  readonly protocol: string;
  readonly firstId: number;
  /** Ids are below it, and begin with 0 again. */
  readonly idCount: number;
  /** Null: it is about no flow. Throws `ProtocolError`. */
  readonly decode: (bytes: Uint8Array) => Message | null;
  readonly idOf: (message: Message) => number;
  readonly openChannel: (id: number) => FlowChannel<Message>;
  /** A flow has ended. */
  readonly ended: () => void;
}

export class OpenedFlows<Message> {
  readonly #options: OpenedFlowsOptions<Message>;
  readonly #flows = new Map<number, OpenedFlow<Message>>();
  #nextId: number;

  constructor(options: OpenedFlowsOptions<Message>) {
    this.#options = options;
    this.#nextId = options.firstId;
  }

  /** Throws `DialError` where all ids are taken. */
  open(): DatagramFlow {
    const { protocol, idCount, openChannel } = this.#options;
    if (this.#flows.size >= idCount)
      throw new DialError("failed", `${protocol}: no more flows of datagrams fit into a connection`);
    while (this.#flows.has(this.#nextId)) this.#nextId = (this.#nextId + 1) % idCount;
    const id = this.#nextId;
    this.#nextId = (id + 1) % idCount;
    const flow = new OpenedFlow(openChannel(id), () => {
      this.#flows.delete(id);
      this.#options.ended();
    });
    this.#flows.set(id, flow);
    return flow;
  }

  get isEmpty(): boolean {
    return this.#flows.size === 0;
  }

  /** A message of the server's; one that cannot be read is dropped, as on any network. The bytes are lent. */
  take(bytes: Uint8Array): void {
    const { decode, idOf } = this.#options;
    try {
      const message = decode(bytes);
      if (message !== null) this.#flows.get(idOf(message))?.take(message);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
    }
  }

  /** The connection is over. */
  close(): void {
    for (const flow of this.#flows.values()) flow.close();
  }
}

class OpenedFlow<Message> implements DatagramFlow {
  readonly closed: Promise<void>;
  readonly #channel: FlowChannel<Message>;
  readonly #settle: () => void;
  #isOver = false;
  #on: (item: Datagram) => void = () => {};

  constructor(channel: FlowChannel<Message>, forget: () => void) {
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
    if (!this.#isOver) this.#channel.send(item);
  }

  take(message: Message): void {
    const item = this.#channel.take(message);
    if (item !== null) this.#on(item);
  }

  /** The connection is over. */
  close(): void {
    this.#isOver = true;
    this.#settle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isOver) return;
    this.close();
    this.#channel.dissociate?.();
  }
}
