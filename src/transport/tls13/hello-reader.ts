/** The first message of a client, put together from its records as they arrive, for those who look before TLS begins. */
import { ByteQueue } from "#lib/byte-queue.ts";
import { MESSAGE, MessageReader } from "./handshake-messages.ts";
import { RECORD, takeRecord } from "./records.ts";

/** Hellos of browsers are below 2 KiB; one that is longer is not looked at. */
export const MAX_HELLO_BYTES = 16 * 1024;

export class HelloReader {
  readonly #arrived = new ByteQueue();
  readonly #messages = new MessageReader();
  #bytes = 0;

  /** The whole message with its header; `more`: it is not there yet; `none`: it is no ClientHello that begins a connection. */
  push(bytes: Buffer): Buffer | "more" | "none" {
    this.#bytes += bytes.length;
    this.#arrived.push(bytes);
    try {
      for (let record = takeRecord(this.#arrived); record !== null; record = takeRecord(this.#arrived)) {
        if (record.type !== RECORD.handshake || record.body.length === 0) return "none";
        this.#messages.push(record.body);
        const message = this.#messages.next();
        if (message === null) continue;
        const isWhole =
          message.type === MESSAGE.clientHello && this.#messages.waiting === 0 && this.#arrived.length === 0;
        return isWhole ? message.whole : "none";
      }
    } catch {
      return "none";
    }
    return this.#bytes > MAX_HELLO_BYTES ? "none" : "more";
  }
}
