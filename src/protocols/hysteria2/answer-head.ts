/** Takes the server's answer to a request off the front of what comes; everything else is as it is. */
import { DialError, ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamHead } from "#transport/quic/streams/quic-stream.ts";
import { takeTcpResponse } from "./wire.ts";

export class AnswerHead implements StreamHead {
  readonly #node: string;
  readonly #arrived = new ByteQueue();

  constructor(node: string) {
    this.#node = node;
  }

  /** Throws `ProtocolError`, and `DialError` where the server has not reached the destination. */
  take(bytes: Buffer): Buffer | null {
    this.#arrived.push(bytes);
    const answer = takeTcpResponse(this.#arrived);
    if (answer === null) return null;
    if (answer.isOk) return this.#arrived.takeAll();
    throw new DialError("failed", `${this.#node}: the server answers: ${answer.message || "it failed"}`);
  }

  endEarly(): Error {
    return new ProtocolError("hysteria2: the stream ended before the server's answer");
  }
}
