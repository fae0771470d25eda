import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import type { WireRemainder } from "#core/handover.ts";
import { describeWire } from "#dataplane/workers/shared/describe-wire.ts";
import { IN_NUMBERS, POSTED, RETURNED, type RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { writeShortOpening } from "#dataplane/workers/shared/short-opening.ts";
import type { WireSpec } from "#dataplane/workers/shared/wire-spec.ts";
import type { ReturnedRemainder } from "#dataplane/workers/shared/worker-data.ts";

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
    else if (writeShortOpening(this.#table, index, spec)) messageStates[index] = IN_NUMBERS;
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
    for (;;) {
      const unread: ReturnedRemainder | undefined = receiveMessageOnPort(this.#messages)?.message;
      if (unread === undefined || unread.index === index) return unread?.remainder ?? null;
    }
  }

  close(): void {
    this.#messages.close();
  }
}
