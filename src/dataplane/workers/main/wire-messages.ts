import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import type { WireRemainder } from "#core/handover.ts";
import { RETURNED, type RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import {
  contextsOf,
  LAYER_CONTEXTS,
  WIRE_NUMBERS,
  type WireMessage,
  type WireSpec,
} from "#dataplane/workers/shared/wire-spec.ts";
import type { ReturnedRemainder } from "#dataplane/workers/shared/worker-data.ts";

/** What a wire takes along to a worker and brings back: numbers in shared memory, unread bytes as messages. */
export class WireMessages {
  readonly #table: RelayMemory;
  readonly #messages: MessagePort;

  constructor(table: RelayMemory, messages: MessagePort) {
    this.#table = table;
    this.#messages = messages;
  }

  /** Before the command that has the worker read it. The descriptor is the worker's from that command on. */
  describe(index: number, { fd, kind, numbers, unread, layers = [], details }: WireSpec): void {
    const { descriptors, kinds, messageStates, owned, wireNumbers } = this.#table;
    descriptors[index] = fd;
    kinds[index] = owned[index] = kind;
    const start = index * WIRE_NUMBERS;
    for (const [at, number] of numbers.entries()) wireNumbers[start + at] = number;
    const sealed = layers.find((layer) => layer.kind === "sealed");
    const contexts = sealed === undefined ? [] : contextsOf(sealed);
    for (const [at, context] of contexts.entries()) wireNumbers[start + LAYER_CONTEXTS + at] = context;
    const hasMessage = unread !== null || layers.length > 0 || details !== undefined;
    messageStates[index] = hasMessage ? 1 : 0;
    if (hasMessage)
      this.#messages.postMessage({ unread, layers, details: details ?? {} } satisfies WireMessage);
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
