/** Takes the server's answer to a request off the front of what comes; everything else is as it is. */
import { DialError, ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { takeTcpResponse } from "./wire.ts";

export class AnswerCodec implements StreamCodec {
  readonly #node: string;
  /** Null: the answer was good. */
  #arrived: ByteQueue | null = new ByteQueue();

  constructor(node: string) {
    this.#node = node;
  }

  seal(plain: Buffer): Buffer {
    return plain;
  }

  sealEnd(): null {
    return null;
  }

  /** Throws `ProtocolError`, and `DialError` where the server has not reached the destination. */
  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    if (this.#arrived === null) return emit(wire);
    this.#arrived.push(wire);
    const answer = takeTcpResponse(this.#arrived);
    if (answer === null) return;
    if (!answer.isOk)
      throw new DialError("failed", `${this.#node}: the server answers: ${answer.message || "it failed"}`);
    const rest = this.#arrived.takeAll();
    this.#arrived = null;
    if (rest.length > 0) emit(rest);
  }

  openEnd(): void {
    if (this.#arrived !== null)
      throw new ProtocolError("hysteria2: the stream ended before the server's answer");
  }
}
