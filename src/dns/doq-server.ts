/** DNS over QUIC (RFC 9250) with one client: a stream for each question. */
import { messageOf, ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { Connection } from "#transport/quic/connection.ts";
import type { QuicServerEvents } from "#transport/quic/server/connection.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { type ClientQuestions, Overloaded } from "./client-questions.ts";
import { hasOption, paddedAnswer } from "./edns.ts";
import { frameOf, MOST_PIECES } from "./frames.ts";
import { EDNS_TCP_KEEPALIVE, HEADER_BYTES, MAX_MESSAGE_BYTES } from "./types.ts";

/** RFC 9250 §4.1.1 and §4.3. */
export const DOQ = {
  alpn: "doq",
  noError: 0x0,
  internalError: 0x1,
  protocolError: 0x2,
  excessiveLoad: 0x4,
} as const;
const LENGTH_BYTES = 2;

export class DoqServer implements QuicServerEvents {
  readonly #connection: Connection;
  readonly #questions: ClientQuestions;

  constructor(connection: Connection, questions: ClientQuestions) {
    this.#connection = connection;
    this.#questions = questions;
  }

  onDatagram(): void {}

  onStream(stream: QuicStream): void {
    stream.on("error", () => {});
    if (stream.send === null) return this.#refuse(); // RFC 9250 §4.3.3
    const arrived = new ByteQueue();
    stream.on("data", (piece: Buffer) => {
      arrived.push(piece);
      arrived.joinBeyond(MOST_PIECES);
      if (arrived.length > LENGTH_BYTES + MAX_MESSAGE_BYTES) this.#refuse();
    });
    stream.on("end", () => void this.#answer(stream, arrived.takeAll()));
  }

  async #answer(stream: QuicStream, framed: Buffer): Promise<void> {
    try {
      const answer = await this.#questions.ask(questionIn(framed));
      if (!stream.destroyed) stream.end(frameOf(paddedAnswer(answer)));
    } catch (error) {
      if (error instanceof ProtocolError) return this.#refuse();
      this.#questions.log.debug(() => `[DNS] no answer over QUIC: ${messageOf(error)}`);
      stream.abortCode = error instanceof Overloaded ? DOQ.excessiveLoad : DOQ.internalError;
      stream.destroy(new Error("the question is not answered"));
    }
  }

  /** The client breaks the protocol, which ends the connection (RFC 9250 §4.3.3). */
  #refuse(): void {
    this.#connection.close(DOQ.protocolError, "");
  }
}

/** Throws `ProtocolError`: not one whole message, an id, or an option that is not for QUIC (RFC 9250 §4.2.1, §5.5.2). */
function questionIn(framed: Buffer): Buffer {
  const message = framed.subarray(LENGTH_BYTES);
  const isWhole = message.length >= HEADER_BYTES && message.length === framed.readUInt16BE(0);
  if (!isWhole || message.readUInt16BE(0) !== 0)
    throw new ProtocolError("a stream without one whole message of id 0");
  if (hasOption(message, EDNS_TCP_KEEPALIVE)) throw new ProtocolError("edns-tcp-keepalive over QUIC");
  return message;
}
