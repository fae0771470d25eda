import type { Duplex } from "node:stream";
import type { DialTemplate } from "#core/dial-plan.ts";
import type { DialContext, Outbound } from "#core/outbound.ts";
import type { DatagramFlow, Destination, Network } from "#core/session.ts";

/** A node that counts its open connections, so that it can be disposed of after the last one. */
export class TrackedOutbound implements Outbound {
  readonly name: string;
  readonly type: string;
  readonly networks: ReadonlySet<Network>;
  readonly passes?: "rule" | "line";
  readonly rejects?: true;
  readonly inert?: string;
  readonly sendsDatagrams: boolean;
  readonly #inner: Outbound;
  #running = 0;
  #idle: (() => void) | null = null;

  constructor(inner: Outbound) {
    this.#inner = inner;
    this.name = inner.name;
    this.type = inner.type;
    this.networks = inner.networks;
    this.sendsDatagrams = inner.sendsDatagrams === true;
    if (inner.passes !== undefined) this.passes = inner.passes;
    if (inner.rejects !== undefined) this.rejects = inner.rejects;
    if (inner.inert !== undefined) this.inert = inner.inert;
  }

  async connect(destination: Destination, context: DialContext): Promise<Duplex> {
    const leave = this.#enter();
    try {
      const stream = await this.#inner.connect(destination, context);
      if (stream.closed) leave();
      else stream.once("close", leave);
      return stream;
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Those connections are not counted: where a worker can make them, nothing of the node is needed for longer. */
  plain(...asked: Parameters<NonNullable<Outbound["plain"]>>): ReturnType<NonNullable<Outbound["plain"]>> {
    return this.#inner.plain?.(...asked) ?? null;
  }

  template(): DialTemplate | null {
    return this.#inner.template?.() ?? null;
  }

  async associate(destination: Destination, context: DialContext): Promise<DatagramFlow> {
    const leave = this.#enter();
    try {
      const flow = await this.#inner.associate(destination, context);
      flow.closed.then(leave, leave);
      return {
        send: (item) => flow.send(item),
        receive: (on) => flow.receive(on),
        closed: flow.closed,
        async [Symbol.asyncDispose]() {
          await flow[Symbol.asyncDispose]();
          leave();
        },
      };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /** Settles when its last connection has ended and it is disposed of. It must not be dialled any more. */
  async retire(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => (this.#idle = resolve));
    await this[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#inner[Symbol.asyncDispose]();
  }

  #enter(): () => void {
    let left = false;
    this.#running++;
    return () => {
      if (left) return;
      left = true;
      this.#running--;
      if (this.#running === 0) this.#idle?.();
    };
  }
}
