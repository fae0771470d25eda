/** Messages for another thread: those of one turn of the event loop go together. What the other one has not read is known. */
import type { Transferable } from "node:worker_threads";
import type { Acknowledged } from "./messages.ts";

/** What is asked of a `MessagePort`. */
export interface Posts {
  postMessage(value: unknown, transfer?: readonly Transferable[]): void;
}

interface Carried {
  readonly op: string;
  readonly bytes?: Uint8Array | number;
}

/** So many messages, or bytes, are read before that is said. */
const READ_MESSAGES = 256;
const READ_BYTES = 64 * 1024;

export class Outbox<Message extends Carried> {
  /** Put here and not read there, as far as is known. */
  unreadMessages = 0;
  unreadBytes = 0;
  /** Called when it has become more, or less. */
  onChange: () => void = () => {};
  readonly #port: Posts;
  readonly #acknowledge: (read: Acknowledged) => Message;
  #messages: Message[] = [];
  #transfer: ArrayBuffer[] = [];
  /** Read here and not yet said. */
  #readMessages = 0;
  #readBytes = 0;

  constructor(port: Posts, acknowledge: (read: Acknowledged) => Message) {
    this.#port = port;
    this.#acknowledge = acknowledge;
  }

  /** `given`: memory in the message, which is the other thread's from now on, whole. */
  put(message: Message, given?: ArrayBuffer): void {
    this.unreadMessages++;
    this.unreadBytes += given?.byteLength ?? 0;
    if (given !== undefined) this.#transfer.push(given);
    this.#add(message);
  }

  #add(message: Message): void {
    if (this.#messages.length === 0) setImmediate(this.flush);
    this.#messages.push(message);
  }

  /** At once, where something else that the other thread reads must not come before. */
  readonly flush = (): void => {
    if (this.#messages.length === 0) return;
    const [messages, transfer] = [this.#messages, this.#transfer];
    this.#messages = [];
    this.#transfer = [];
    this.#port.postMessage(messages, transfer);
    this.onChange();
  };

  /** These came from the other side, and are done with. */
  onRead(messages: readonly Carried[]): void {
    for (const { op, bytes } of messages) {
      if (op === "read") continue;
      this.#readMessages++;
      if (bytes instanceof Uint8Array) this.#readBytes += bytes.length;
    }
    if (this.#readMessages < READ_MESSAGES && this.#readBytes < READ_BYTES) return;
    this.#add(this.#acknowledge({ messages: this.#readMessages, bytes: this.#readBytes }));
    this.#readMessages = this.#readBytes = 0;
  }

  onAcknowledged({ messages, bytes }: Acknowledged): void {
    this.unreadMessages -= messages;
    this.unreadBytes -= bytes;
    this.onChange();
  }
}
