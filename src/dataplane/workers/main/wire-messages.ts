import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import type { WireRemainder } from "#core/wire-state.ts";
import { describeWire } from "#dataplane/workers/shared/describe-wire.ts";
import { IN_NUMBERS, POSTED, RETURNED, type RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { writeShortLayer } from "#dataplane/workers/shared/short-layer.ts";
import type { WireSpec } from "#dataplane/workers/shared/wire-spec.ts";
import type { LeftClient, ReturnedRemainder } from "#dataplane/workers/shared/worker-data.ts";

/** What a wire takes along to a worker and brings back: numbers in shared memory, unread bytes as messages. */
export class WireMessages {
  readonly #table: RelayMemory;
  readonly #messages: MessagePort;

  constructor(table: RelayMemory, messages: MessagePort) {
    this.#table = table;
    this.#messages = messages;
  }

  /** Before the command that has the worker read it. */
  describe(index: number, spec: WireSpec): void {
    const { messageStates } = this.#table;
    const message = describeWire(this.#table, index, spec);
    if (message === null) messageStates[index] = 0;
    else if (writeShortLayer(this.#table, index, spec)) messageStates[index] = IN_NUMBERS;
    else {
      messageStates[index] = POSTED;
      this.#messages.postMessage(message);
    }
  }

  /**
   * For an index whose slot has just ended, in the order of the ends: a message that is not taken is lost. Null: there
   * is none.
   */
  takeRemainder(index: number): WireRemainder | null {
    if (this.#table.messageStates[index] !== RETURNED) return null;
    return this.#take<ReturnedRemainder>(index)?.remainder ?? null;
  }

  /** The same of a client that was left; null: it has left nothing. */
  takeLeft(index: number): LeftClient | null {
    return this.#take<LeftClient>(index);
  }

  #take<Message extends { readonly index: number }>(index: number): Message | null {
    for (;;) {
      const taken: Message | undefined = receiveMessageOnPort(this.#messages)?.message;
      if (taken === undefined || taken.index === index) return taken ?? null;
    }
  }

  /** In front of the command that has the worker read it. */
  post(message: unknown): void {
    this.#messages.postMessage(message);
  }

  close(): void {
    this.#messages.close();
  }
}
