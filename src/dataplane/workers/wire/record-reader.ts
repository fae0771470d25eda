import { byteAt } from "#lib/at.ts";
import { ALERT, decodeAlert, type AlertName, TlsFault } from "#transport/tls13/alerts.ts";
import { MESSAGE, MessageReader } from "#transport/tls13/handshake-messages.ts";
import { lastBeforePadding } from "#transport/tls13/padding.ts";
import { decodeKeyUpdate, decodeTicket, type Ticket } from "#transport/tls13/post-handshake.ts";
import { HEADER_BYTES, MAX_CONTENT_BYTES, MAX_SEALED_BYTES, RECORD } from "#transport/tls13/records.ts";
import { type CipherMemory, TAG_BYTES } from "./cipher-memory.ts";
import type { RecordCipher } from "./record-cipher.ts";
import type { SealedBelow } from "./sealed-below.ts";
import { BROKEN, SealedReader } from "./sealed-reader.ts";
import type { WireIo } from "./wire.ts";

/** Records and messages in a row that carry no payload: a peer that sends more keeps us busy for nothing. */
const MAX_USELESS = 32;

/** So many records are opened in the time of a change of keys. */
const UPDATE_MESSAGES = 16;

/** Behind the content, and sealed with it. */
const TYPE_BYTES = 1;

/** What the peer's records call for besides passing payload on. */
export interface RecordAnswers {
  /** The peer has changed its key and asks for the same. */
  onKeyWanted(): void;
  /** It may be dialled again with it. */
  onTicket(ticket: Ticket): void;
  /** The peer has broken the rules. */
  onFault(io: WireIo, alert: AlertName): void;
}

export interface RecordReaderStart {
  readonly answers: RecordAnswers;
  /** Read from the socket already, and not opened; null: nothing was. */
  readonly rest: Uint8Array | null;
  readonly isExact: boolean;
}

/** The direction from a TLS 1.3 server behind its handshake (RFC 8446 §5, §4.6, §6). */
export class RecordReader extends SealedReader {
  readonly #cipher: RecordCipher;
  readonly #answers: RecordAnswers;
  readonly #messages = new MessageReader();
  #useless = 0;
  /** What lies behind a record with payload is not looked at before the next read. */
  isExact: boolean;
  protected readonly isCut = false;

  constructor(
    memory: CipherMemory,
    below: SealedBelow,
    cipher: RecordCipher,
    { answers, rest, isExact }: RecordReaderStart,
  ) {
    super(memory, below, rest);
    this.#cipher = cipher;
    this.#answers = answers;
    this.isExact = isExact;
  }

  /** Nothing of a message has come without the rest. */
  get isWhole(): boolean {
    return this.last === null && this.#messages.waiting === 0;
  }

  protected due(end: number): number {
    return end - this.at < HEADER_BYTES ? 0 : HEADER_BYTES + lengthIn(this.memory.wire, this.at);
  }

  protected open(io: WireIo, end: number, room: number): number {
    // The type behind the content of the last one may lie beyond the room, but not beyond the buffer.
    const most = Math.min(room, this.memory.plain.length - TYPE_BYTES);
    let bytes = 0;
    try {
      for (let size = this.#arrived(end); size >= 0; size = this.#arrived(end)) {
        this.isFull = this.isSated || (bytes > 0 && bytes + size - TAG_BYTES - TYPE_BYTES > most);
        if (this.isFull) break;
        bytes += this.#openRecord(bytes, size);
        this.isFull = this.isExact && bytes > 0 && this.at < end;
        if (this.isExact && bytes > 0) break;
      }
    } catch (error) {
      if (!(error instanceof TlsFault)) throw error;
      this.last = BROKEN;
      this.#answers.onFault(io, error.alert);
    }
    return bytes;
  }

  /** The length of the next record without its header; -1: it is not whole, or nothing more is to be read. */
  #arrived(end: number): number {
    const { wire } = this.memory;
    const { at } = this;
    if (this.last !== null || end - at < HEADER_BYTES) return -1;
    if (byteAt(wire, at) !== RECORD.applicationData || byteAt(wire, at + 1) !== 3)
      throw new TlsFault("unexpected_message", "a record without protection");
    const size = lengthIn(wire, at);
    if (size > MAX_SEALED_BYTES) throw new TlsFault("record_overflow", `a record of ${size} bytes`);
    if (size <= TAG_BYTES) throw new TlsFault("bad_record_mac", "a protected record without content");
    return end - at >= HEADER_BYTES + size ? size : -1;
  }

  /** So far behind the start of the thread's buffer. Answers with the length of its payload. */
  #openRecord(to: number, size: number): number {
    const { evp, plain, plainAddresses, wireAddresses } = this.memory;
    this.#cipher.begin(wireAddresses.of(this.at));
    const from = wireAddresses.of(this.at + HEADER_BYTES);
    const plainBytes = size - TAG_BYTES;
    if (!evp.openAt(this.#cipher.context, plainAddresses.of(to), from, plainBytes))
      throw new TlsFault("bad_record_mac", "a record that is not authentic");
    this.at += HEADER_BYTES + size;
    this.opened(HEADER_BYTES + size, plainBytes - TYPE_BYTES);
    const end = lastBeforePadding(plain, to, to + plainBytes);
    if (end < to) throw new TlsFault("unexpected_message", "a record of padding alone");
    if (end - to > MAX_CONTENT_BYTES)
      throw new TlsFault("record_overflow", `${end - to} bytes in one record`);
    const type = byteAt(plain, end);
    if (type === RECORD.handshake) this.#takeHandshake(Buffer.from(plain.subarray(to, end)));
    else {
      this.#refuseWaiting();
      if (type === RECORD.alert) this.#takeAlert(Buffer.from(plain.subarray(to, end)));
      else if (type !== RECORD.applicationData)
        throw new TlsFault("unexpected_message", `content of type ${type}`);
      else return this.#countPayload(end - to);
    }
    return 0;
  }

  #countPayload(bytes: number): number {
    if (bytes === 0) this.#countUseless();
    else this.#useless = 0;
    return bytes;
  }

  #countUseless(): void {
    if (++this.#useless > MAX_USELESS)
      throw new TlsFault("unexpected_message", "too many records without payload");
  }

  /** No message may lie on both sides of other content or of a change of keys (RFC 8446 §5.1). */
  #refuseWaiting(): void {
    if (this.#messages.waiting > 0) throw new TlsFault("unexpected_message", "a message that is cut off");
  }

  /** Behind `close_notify` nothing is read; any other alert ends the connection. */
  #takeAlert(content: Buffer): void {
    const description = decodeAlert(content);
    if (description === ALERT.user_canceled) this.#countUseless();
    else this.last = description === ALERT.close_notify ? 0 : BROKEN;
  }

  #takeHandshake(bytes: Buffer): void {
    if (bytes.length === 0) throw new TlsFault("unexpected_message", "an empty handshake record");
    this.#messages.push(bytes);
    for (let message = this.#messages.next(); message !== null; message = this.#messages.next()) {
      this.#countUseless();
      if (message.type === MESSAGE.keyUpdate) this.#takeKeyUpdate(message.body);
      else if (message.type === MESSAGE.newSessionTicket) this.#answers.onTicket(decodeTicket(message.body));
      else throw new TlsFault("unexpected_message", `handshake message ${message.type} behind the handshake`);
    }
  }

  #takeKeyUpdate(body: Buffer): void {
    const isWanted = decodeKeyUpdate(body);
    this.#refuseWaiting();
    this.#cipher.update();
    this.weigh(UPDATE_MESSAGES);
    if (isWanted) this.#answers.onKeyWanted();
  }
}

/** Of the record there, as its header says. */
function lengthIn(wire: Uint8Array, at: number): number {
  return (byteAt(wire, at + 3) << 8) | byteAt(wire, at + 4);
}
