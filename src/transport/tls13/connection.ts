/**
 * One side of a TLS 1.3 connection as a state machine without I/O: bytes of the peer in by `feed`, its payload out by
 * `read`, bytes for the peer by `takeOutput`, `write` and `end`. Who proves what to whom is the handshake's business.
 */
import type { DetachedState, RecordState } from "#core/wire-state.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { RecordConnection } from "#transport/record-connection.ts";
import { type AlertName, ALERT, decodeAlert, PeerAlert, TlsFault } from "./alerts.ts";
import type { CipherSuite } from "./cipher-suites.ts";
import type { ConnectionOutput, Handshake } from "./handshake.ts";
import { type HandshakeMessage, MESSAGE, MessageReader } from "./handshake-messages.ts";
import { decodeKeyUpdate, decodeTicket } from "./post-handshake.ts";
import { CHANGE_CIPHER_SPEC, RecordOutput, sealPayload } from "./record-output.ts";
import { type RawRecord, RECORD, RecordOpener, takeRecord } from "./records.ts";

/** Records and messages in a row that carry no payload: a peer that sends more keeps us busy for nothing. */
const MAX_USELESS = 32;
const NOTHING = Buffer.alloc(0);

export class Tls13Connection<Kind extends Handshake = Handshake> implements RecordConnection {
  readonly wireKind = "records";
  protected readonly handshake: Kind;
  readonly #portable: boolean;
  readonly #output: RecordOutput;
  readonly #arrived = new ByteQueue();
  readonly #messages = new MessageReader();
  #opener: RecordOpener | null = null;
  #useless = 0;
  /** The peer said close_notify. */
  #hasEnded = false;
  /** We said it, or a fault ended the connection. */
  #isClosed = false;

  /** `portable`: by `node:crypto` alone, without FFI. */
  constructor(make: (output: ConnectionOutput) => Kind, portable = false) {
    this.#portable = portable;
    const output = (this.#output = new RecordOutput(portable));
    this.handshake = make({
      send: (messages) => output.sendMessages(messages),
      openWith: (suite, secret) => this.#openWith(suite, secret),
      sealWith: (suite, secret, mostContent = null) => output.sealWith(suite, secret, mostContent),
      sendRecords: (records) => output.sendRecords(records),
      sendPadding: (recordBytes) => output.sendPadding(recordBytes),
    });
  }

  /** To be called first: what this side says first is in `takeOutput` then. */
  start(): void {
    this.handshake.start();
  }

  /** The peer is known, payload may go both ways. */
  get isSecure(): boolean {
    return this.handshake.isDone;
  }

  /** The peer sends no more payload. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** What came from the peer; owned by the connection from here. */
  feed(bytes: Buffer): void {
    if (!this.#hasEnded && !this.#isBroken()) this.#arrived.push(bytes);
  }

  #isBroken(): boolean {
    return this.#isClosed && !this.isSecure;
  }

  /**
   * Payload of the next record that has some; null: more bytes are needed, or the peer has ended. Throws `TlsFault` or
   * `PeerAlert`; the connection is over then, and the alert for the peer is in `takeOutput`.
   */
  read(): Buffer | null {
    try {
      while (!this.#hasEnded) {
        const record = takeRecord(this.#arrived);
        if (record === null) return null;
        const payload = this.#takeRecord(record);
        if (payload !== null) return payload;
      }
      return null;
    } catch (error) {
      this.#fail(error instanceof TlsFault ? error.alert : "internal_error", error instanceof PeerAlert);
      throw error;
    }
  }

  /** Bytes for the peer that arose meanwhile; null: none. */
  takeOutput(): Buffer | null {
    return this.#output.take();
  }

  /** Records for the payload. Only once it is secure, and before `end`. */
  write(payload: Uint8Array): Buffer {
    const { sealer } = this.#output;
    if (sealer === null || !this.isSecure || this.#isClosed) throw new Error("no payload can be sent now");
    return sealPayload(sealer, payload);
  }

  /** The peer is told that no more payload comes. */
  end(): Buffer {
    if (this.#isClosed) return NOTHING;
    this.#isClosed = true;
    return this.#output.alert("close_notify");
  }

  /** Bytes behind the last record that was read, removed: for those who leave TLS behind. */
  takeUnread(): Buffer {
    return this.#arrived.takeAll();
  }

  get unreadBytes(): number {
    return this.#arrived.length;
  }

  /** The payload of a record that stays to be read, behind all that was read; null: there is none in it, or it is not authentic. */
  preview(record: RawRecord): Buffer | null {
    try {
      const opened = this.#opener?.preview(record) ?? null;
      return opened?.type === RECORD.applicationData && opened.content.length > 0 ? opened.content : null;
    } catch (error) {
      if (error instanceof TlsFault) return null;
      throw error;
    }
  }

  /** For those who go on with it in place of this one, once it is secure; nothing of it may be unread. */
  get state(): RecordState {
    const [opening, sealing] = [this.#opener?.state, this.#output.sealer?.state];
    if (!opening || !sealing) throw new Error("a connection that is not secure");
    const secrets = Buffer.concat([opening.secret, sealing.secret]);
    return { opened: opening.sequence, sealed: sealing.sequence, secrets };
  }

  /** Payload goes both ways, nothing is half read, and its ciphers are such as a worker can go on with. */
  get canDepart(): boolean {
    const isOpen =
      this.isSecure &&
      this.handshake.suite !== null &&
      !this.#hasEnded &&
      !this.#isClosed &&
      this.#output.isEmpty;
    return isOpen && this.#messages.waiting === 0 && this.#output.sealer?.canBeGiven === true;
  }

  /**
   * Numbers and bytes of the wire `records` for a worker. Only while `canDepart`; nothing can be read or written here
   * behind it.
   */
  depart(): DetachedState {
    const { suite } = this.handshake;
    const { sealer } = this.#output;
    const { mostContent = 0 } = sealer ?? {};
    const [opening, sealing] = [this.#opener?.giveAway(), sealer?.giveAway()];
    if (suite === null || !opening || !sealing) throw new Error("this connection cannot be given away");
    this.#isClosed = this.#hasEnded = true;
    return {
      numbers: [
        Number(opening.context),
        Number(sealing.context),
        opening.sequence,
        sealing.sequence,
        suite.id,
        mostContent,
      ],
      unread: Uint8Array.from(Buffer.concat([opening.secret, sealing.secret, this.takeUnread()])),
    };
  }

  /** Behind `depart`: it is the connection of this one again. */
  comeBack({ opened, sealed, secrets }: RecordState): void {
    const { suite } = this.handshake;
    if (suite === null) throw new Error("a connection that has not departed");
    const bytes = Buffer.from(secrets);
    const { hashBytes } = suite;
    const portable = this.#portable;
    this.#opener = new RecordOpener(suite, bytes.subarray(0, hashBytes), { portable, sequence: opened });
    this.#output.sealOn(suite, bytes.subarray(hashBytes, 2 * hashBytes), sealed);
    this.#isClosed = this.#hasEnded = false;
    this.feed(bytes.subarray(2 * hashBytes));
  }

  [Symbol.dispose](): void {
    this.handshake[Symbol.dispose]?.();
    this.#isClosed = true;
    this.#opener?.[Symbol.dispose]();
    this.#output[Symbol.dispose]();
    this.#opener = null;
  }

  #fail(alert: AlertName, isPeers: boolean): void {
    this.#arrived.takeAll();
    if (!isPeers && !this.#isClosed) this.#output.sendAlert(alert);
    this.#isClosed = this.#hasEnded = true;
  }

  #openWith(suite: CipherSuite, secret: Buffer): void {
    this.#refuseWaiting();
    this.#opener?.[Symbol.dispose]();
    this.#opener = new RecordOpener(suite, secret, { portable: this.#portable });
  }

  /** No message may lie on both sides of a change of keys (RFC 8446 §5.1). */
  #refuseWaiting(): void {
    if (this.#messages.waiting > 0)
      throw new TlsFault("unexpected_message", "handshake bytes behind the end of a key");
  }

  #takeRecord(record: RawRecord): Buffer | null {
    if (record.type !== RECORD.handshake && this.#opener === null) this.#refuseWaiting();
    if (record.type === RECORD.changeCipherSpec) return this.#takeChange(record.body);
    const opener = this.#opener;
    if (opener === null) return this.#takePlain(record);
    if (record.type !== RECORD.applicationData)
      throw new TlsFault("unexpected_message", `an open record of type ${record.type}`);
    const { type, content } = opener.open(record);
    if (type === RECORD.handshake) return this.#takeHandshake(content);
    this.#refuseWaiting();
    if (type === RECORD.alert) return this.#takeAlert(content);
    if (type !== RECORD.applicationData || !this.isSecure)
      throw new TlsFault("unexpected_message", `content of type ${type}`);
    if (content.length === 0) return this.#countUseless();
    this.#useless = 0;
    return content;
  }

  #takePlain({ type, body }: RawRecord): null {
    if (type === RECORD.alert) throw new PeerAlert(decodeAlert(body));
    if (type !== RECORD.handshake) throw new TlsFault("unexpected_message", "payload before the handshake");
    return this.#takeHandshake(body);
  }

  /** Without meaning, for middleboxes (RFC 8446 §D.4). */
  #takeChange(body: Buffer): null {
    if (this.isSecure || !body.equals(CHANGE_CIPHER_SPEC))
      throw new TlsFault("unexpected_message", "a ChangeCipherSpec that may not stand here");
    return this.#countUseless();
  }

  #countUseless(): null {
    if (++this.#useless > MAX_USELESS)
      throw new TlsFault("unexpected_message", "too many records without payload");
    return null;
  }

  #takeAlert(content: Buffer): null {
    const description = decodeAlert(content);
    if (description === ALERT.user_canceled) return this.#countUseless();
    if (description !== ALERT.close_notify || !this.isSecure) throw new PeerAlert(description);
    this.#hasEnded = true;
    this.#arrived.takeAll();
    return null;
  }

  #takeHandshake(bytes: Buffer): null {
    if (bytes.length === 0) throw new TlsFault("unexpected_message", "an empty handshake record");
    this.#messages.push(bytes);
    for (let message = this.#messages.next(); message !== null; message = this.#messages.next())
      if (this.isSecure) this.#takePost(message);
      else this.handshake.take(message);
    return null;
  }

  /** Messages behind the handshake (RFC 8446 §4.6). */
  #takePost({ type, body }: HandshakeMessage): void {
    this.#countUseless();
    if (type === MESSAGE.newSessionTicket && this.handshake.takeTicket !== undefined)
      return this.handshake.takeTicket(decodeTicket(body));
    if (type !== MESSAGE.keyUpdate)
      throw new TlsFault("unexpected_message", `handshake message ${type} behind the handshake`);
    const wantsOurs = decodeKeyUpdate(body);
    this.#refuseWaiting();
    this.#opener?.update();
    if (wantsOurs && !this.#isClosed) this.#output.sendKeyUpdate();
  }
}
