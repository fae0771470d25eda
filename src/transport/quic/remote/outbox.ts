/** Messages for another thread: those of one turn of the event loop go together. What the other one has not read is known. */
import type { Transferable } from "node:worker_threads";
import type { Acknowledged } from "./messages.ts";

/** What is asked of a `MessagePort`. */
export interface Posts {
  postMessage(value: unknown, transfer?: readonly Transferable[]): void;
}

/** What becomes a message as late as it can. */
export interface Sealed {
  seal(): void;
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
  /** Those that get a message when this turn's are sent. */
  readonly #packs: Sealed[] = [];
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
    if (message.bytes instanceof Uint8Array) this.unreadBytes += message.bytes.length;
    if (given !== undefined) this.#transfer.push(given);
    this.#add(message);
  }

  #add(message: Message): void {
    this.#schedule();
    this.#messages.push(message);
  }

  /** `pack` is sealed, and puts its message, when those of this turn are sent. */
  hold(pack: Sealed): void {
    this.#schedule();
    this.#packs.push(pack);
  }

  #schedule(): void {
    if (this.#messages.length === 0 && this.#packs.length === 0) setImmediate(this.flush);
  }

  /** At once, where something else that the other thread reads must not come before. */
  readonly flush = (): void => {
    for (const pack of this.#packs.splice(0)) pack.seal();
    if (this.#messages.length === 0) return;
    const [messages, transfer] = [this.#messages, this.#transfer];
    this.#messages = [];
    this.#transfer = [];
    this.#port.postMessage(messages, transfer);
    this.onChange();
  };

  /** These came from the other side; to be called before they are acted on, which may give their memory back. */
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
