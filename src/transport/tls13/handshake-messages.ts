/** Handshake messages: TYPE(1) LENGTH(3) BODY (RFC 8446 §4), over the borders of records. */
import { ByteQueue } from "#lib/byte-queue.ts";
import { TlsFault } from "./alerts.ts";
import { vector24 } from "./wire.ts";

export const MESSAGE = {
  clientHello: 1,
  serverHello: 2,
  newSessionTicket: 4,
  encryptedExtensions: 8,
  certificate: 11,
  certificateRequest: 13,
  certificateVerify: 15,
  finished: 20,
  keyUpdate: 24,
  compressedCertificate: 25,
} as const;

const HEADER_BYTES = 4;
/** Chains of certificates are the longest messages. */
export const MAX_MESSAGE_BYTES = 128 * 1024;

export interface HandshakeMessage {
  readonly type: number;
  readonly body: Buffer;
  /** With its header, as the transcript has it. */
  readonly whole: Buffer;
}

export function encodeMessage(type: number, ...body: readonly Uint8Array[]): Buffer {
  return Buffer.concat([Buffer.of(type), vector24(...body)]);
}

/** Collects messages from pieces of any size. Holds `MAX_MESSAGE_BYTES` and one record at most. */
export class MessageReader {
  readonly #queue = new ByteQueue();

  push(bytes: Buffer): void {
    this.#queue.push(bytes);
  }

  /** Bytes of a message that is not whole yet, or of further messages. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Null: no whole one is there. Throws `TlsFault`. */
  next(): HandshakeMessage | null {
    const header = this.#queue.peek(HEADER_BYTES);
    if (header === null) return null;
    const size = header.readUIntBE(1, 3);
    if (size > MAX_MESSAGE_BYTES) throw new TlsFault("decode_error", `a handshake message of ${size} bytes`);
    const whole = this.#queue.take(HEADER_BYTES + size);
    return whole === null ? null : { type: whole.readUInt8(0), body: whole.subarray(HEADER_BYTES), whole };
  }
}
