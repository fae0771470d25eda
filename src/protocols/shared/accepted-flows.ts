/** The flows of datagrams that a client has in one connection: one for each id that it uses. */
import type { DatagramFlow, Destination } from "#core/session.ts";
import { oldestKey, valueAt } from "#lib/at.ts";
import { type ClientFlow, clientFlow } from "#net/udp/udp-clients.ts";
import type { FlowChannel } from "./flow-channel.ts";

/** Of one connection. One more takes the place of the one that was silent the longest. */
const MOST_FLOWS = 1024;

interface AcceptedFlow<Message> {
  readonly channel: FlowChannel<Message>;
  /** Null: its first datagram is not whole yet. */
  flow: ClientFlow | null;
}

export interface AcceptedFlowsOptions<Message> {
  /** `first` is then taken by the channel. */
  readonly openChannel: (id: number, first: Message) => FlowChannel<Message>;
  /** Takes a new flow over, and disposes of it when it is idle. */
  readonly onFlow: (flow: DatagramFlow, first: Destination) => void;
}

export class AcceptedFlows<Message> {
  readonly #options: AcceptedFlowsOptions<Message>;
  /** In the order of their last use. */
  readonly #flows = new Map<number, AcceptedFlow<Message>>();
  // Most messages are for the flow of the one before.
  #youngest: { readonly id: number; readonly accepted: AcceptedFlow<Message> } | null = null;

  constructor(options: AcceptedFlowsOptions<Message>) {
    this.#options = options;
  }

  take(id: number, message: Message): void {
    const accepted = this.#youngest?.id === id ? this.#youngest.accepted : this.#renew(id, message);
    const item = accepted.channel.take(message);
    if (item === null) return;
    if (accepted.flow !== null) return accepted.flow.arrived(item);
    const flow = clientFlow(
      (answer) => accepted.channel.send(answer),
      () => this.#flows.get(id) === accepted && this.#forget(id),
    );
    accepted.flow = flow;
    flow.arrived(item);
    this.#options.onFlow(flow.flow, item.destination);
  }

  /** It is the youngest from now on. */
  #renew(id: number, message: Message): AcceptedFlow<Message> {
    const accepted = this.#flows.get(id) ?? {
      channel: this.#options.openChannel(id, message),
      flow: null,
    };
    this.#flows.delete(id);
    if (this.#flows.size >= MOST_FLOWS) this.end(oldestKey(this.#flows));
    this.#flows.set(id, accepted);
    this.#youngest = { id, accepted };
    return accepted;
  }

  #forget(id: number): void {
    this.#flows.delete(id);
    if (this.#youngest?.id === id) this.#youngest = null;
  }

  /** The client has ended it, or another takes its place. */
  end(id: number): void {
    if (!this.#flows.has(id)) return;
    const { flow } = valueAt(this.#flows, id);
    this.#forget(id);
    flow?.close();
  }

  /** The connection is over. */
  close(): void {
    for (const id of this.#flows.keys()) this.end(id);
  }
}
