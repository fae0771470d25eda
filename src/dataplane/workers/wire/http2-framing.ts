import { ProtocolError } from "#core/errors.ts";
import { byteAt } from "#lib/at.ts";
import { MESSAGE_HEAD_BYTES, MessageReader, writeMessageHead } from "#transport/grpc/messages.ts";
import type { Field } from "#transport/http-fields/section.ts";
import * as http2 from "#transport/http2/frames.ts";
import { encodeSection, SectionDecoder } from "#transport/http2/hpack.ts";
import { CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES } from "#transport/http2/windows.ts";
import { ByteStore } from "./byte-store.ts";
import { type MuxBody, MuxFraming, type MuxHeard } from "./mux-framing.ts";

const NOTHING = Buffer.alloc(0);
/** Of all frames of one section, with their heads. */
const MOST_SECTION_BYTES = 64 * 1024;
const MOST_WINDOW = 0x7fff_ffff;
/** Until the peer has said how many it takes. */
const STREAMS_AT_FIRST = 100;
/** What of the connection's window is saved up, besides what waits for readers, before it is granted again. */
const CREDIT_BYTES = CONNECTION_WINDOW_BYTES / 4;
/** The same where the peer has none left: its other streams wait for it. */
const LEAST_CREDIT_BYTES = 64 * 1024;
/** The first byte of a padded data frame, which says how much of it is padding. */
const PADDING = -1;

/** A section of fields that is under way, in as many frames as it takes. */
interface Section {
  readonly id: number;
  readonly isLast: boolean;
  /** Of its frames so far: these may be empty, and thousands. */
  readonly collected: ByteStore;
  /** With the heads of their frames. */
  bytes: number;
}

/** HTTP/2, whose streams carry their data in gRPC messages, or as it is. */
export abstract class Http2Framing extends MuxFraming {
  readonly headBytes = http2.HEAD_BYTES;
  readonly dataHeadBytes: number;
  readonly mostBodyBytes: number;
  readonly firstId = 1;
  override readonly lastId = http2.LAST_ID;
  override readonly mostWindow = MOST_WINDOW;
  readonly receiveWindow = STREAM_WINDOW_BYTES;
  /** Frames that grant us something may be behind data, so all are read: else two sides that hold up each other stay so. */
  override readonly mostHeldBytes = Infinity;
  readonly isPatient = false;
  override readonly hasRequests = false;
  readonly #isGrpc: boolean;
  readonly #decoder = new SectionDecoder();
  /** Of field lists that come again, all but the first to be said. */
  readonly #sections = new Map<readonly Field[], Buffer>();
  #hasSaidFields = false;
  #sendWindow = http2.FIRST_WINDOW;
  #mostStreams = STREAMS_AT_FIRST;
  /** What the connection takes. */
  #room = http2.FIRST_WINDOW;
  /** What may come, and what has come since that was granted. */
  #granted = CONNECTION_WINDOW_BYTES;
  #credit = 0;
  /** The frame whose payload is collected. */
  #type = 0;
  #flags = 0;
  #id = 0;
  #paddedBytes = 0;
  #section: Section | null = null;

  constructor(isGrpc: boolean) {
    super();
    this.#isGrpc = isGrpc;
    const inFrame = isGrpc ? MESSAGE_HEAD_BYTES : 0;
    this.dataHeadBytes = http2.HEAD_BYTES + inFrame;
    this.mostBodyBytes = http2.MOST_PAYLOAD_BYTES - inFrame;
  }

  override get sendWindow(): number {
    return this.#sendWindow;
  }

  override get mostStreams(): number {
    return this.#mostStreams;
  }

  /** What this side says first, behind a client's preface. */
  protected encodeBeginning(settings: readonly (readonly [name: number, value: number])[]): Buffer {
    const all = [...settings, [http2.INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES] as const];
    const more = CONNECTION_WINDOW_BYTES - http2.FIRST_WINDOW;
    return Buffer.concat([http2.encodeSettings(all), http2.encodeNumber(http2.WINDOW_UPDATE, 0, more)]);
  }

  /** The list is one of few; `another` is not. */
  protected encodeFields(id: number, fields: readonly Field[], flags: number, another?: Field): Buffer {
    const isFirst = !this.#hasSaidFields;
    this.#hasSaidFields = true;
    const section = (isFirst ? undefined : this.#sections.get(fields)) ?? encodeSection(fields, isFirst);
    if (!isFirst) this.#sections.set(fields, section);
    const all = another === undefined ? section : Buffer.concat([section, encodeSection([another], false)]);
    return http2.encodeFrame(http2.HEADERS, flags, id, all);
  }

  override payloadIn(window: number): number {
    const inAll = Math.min(window, this.#room);
    const { mostBodyBytes } = this;
    const inFrame = http2.MOST_PAYLOAD_BYTES - mostBodyBytes;
    const frames = Math.floor(inAll / http2.MOST_PAYLOAD_BYTES);
    const rest = inAll - frames * http2.MOST_PAYLOAD_BYTES;
    return Math.max(0, frames * mostBodyBytes + Math.max(0, rest - inFrame));
  }

  override spend(bytes: number): number {
    const { mostBodyBytes } = this;
    const spent = bytes + Math.ceil(bytes / mostBodyBytes) * (http2.MOST_PAYLOAD_BYTES - mostBodyBytes);
    this.#room -= spent;
    return spent;
  }

  override newBody(onData: MuxBody["onData"]): MuxBody | null {
    return this.#isGrpc ? new MessageReader(onData) : null;
  }

  writeDataHead(out: Uint8Array, at: number, id: number, size: number): void {
    const inFrame = http2.MOST_PAYLOAD_BYTES - this.mostBodyBytes;
    http2.writeHead(out, at, http2.DATA, 0, id, size + inFrame);
    if (this.#isGrpc) writeMessageHead(out, at + http2.HEAD_BYTES, size);
  }

  encodeLeft(id: number, endSent: boolean, farEnded: boolean): Uint8Array | null {
    return endSent && farEnded ? null : http2.encodeNumber(http2.RST_STREAM, id, http2.CANCEL);
  }

  encodeCredit(id: number, bytes: number): Uint8Array {
    return http2.encodeNumber(http2.WINDOW_UPDATE, id, bytes);
  }

  encodeFinal(isFault: boolean): Uint8Array {
    return http2.encodeGoAway(this.lastTaken, isFault ? http2.PROTOCOL_ERROR : http2.NO_ERROR);
  }

  /** The number of the latest stream of the peer's. */
  protected abstract readonly lastTaken: number;

  /** The peer may say that it has ended by a reset without an error; like any other, it says that nothing more is taken. */
  protected abstract readonly endsByReset: boolean;

  onHead(head: Buffer, heard: MuxHeard): boolean {
    const length = head.readUIntBE(0, 3);
    this.#type = byteAt(head, 3);
    this.#flags = byteAt(head, 4);
    this.#id = head.readUInt32BE(5) & http2.LAST_ID;
    if (length > http2.MOST_PAYLOAD_BYTES) return false;
    const continues = this.#type === http2.CONTINUATION && this.#section?.id === this.#id;
    if (continues !== (this.#section !== null)) return false;
    if (this.#type === http2.DATA) return this.#onData(length, heard);
    if (length === 0) return this.onCollected(NOTHING, heard);
    heard.collect(length);
    return true;
  }

  override encodeShared(heldBytes: number): Uint8Array | null {
    const more = this.#credit - heldBytes;
    if (more < Math.min(CREDIT_BYTES, Math.max(LEAST_CREDIT_BYTES, this.#granted))) return null;
    this.#granted += more;
    this.#credit -= more;
    return http2.encodeNumber(http2.WINDOW_UPDATE, 0, more);
  }

  #onData(length: number, heard: MuxHeard): boolean {
    if (this.#id === 0) return false;
    this.#granted -= length;
    if (this.#granted < 0) return false;
    this.#credit += length;
    heard.share();
    if ((this.#flags & http2.PADDED) === 0) return this.#hear(length, 0, heard);
    if (length === 0) return false;
    this.#type = PADDING;
    this.#paddedBytes = length - 1;
    heard.collect(1);
    return true;
  }

  #hear(bytes: number, padded: number, heard: MuxHeard): boolean {
    return heard.onData(this.#id, bytes, (this.#flags & http2.END_STREAM) !== 0, padded);
  }

  override onCollected(bytes: Buffer, heard: MuxHeard): boolean {
    if (this.#type === PADDING) {
      const padding = byteAt(bytes, 0);
      return padding <= this.#paddedBytes && this.#hear(this.#paddedBytes - padding, padding + 1, heard);
    }
    if (this.#type === http2.HEADERS) return this.#onHeaders(bytes, heard);
    if (this.#type === http2.CONTINUATION) return this.#onMore(bytes, heard);
    if (this.#type === http2.RST_STREAM) return this.#onReset(bytes, heard);
    if (this.#type === http2.WINDOW_UPDATE) return this.#onCredit(bytes, heard);
    if (this.#type === http2.SETTINGS) return this.#id === 0 && this.#onSettings(bytes, heard);
    if (this.#type === http2.PING) return this.#id === 0 && this.#onPing(bytes, heard);
    if (this.#type === http2.GOAWAY) return this.#id === 0 && this.#onGoAway(bytes, heard);
    return this.#type !== http2.PUSH_PROMISE; // what is not known means nothing
  }

  #onHeaders(bytes: Buffer, heard: MuxHeard): boolean {
    const isPadded = (this.#flags & http2.PADDED) !== 0;
    const padding = isPadded ? (bytes[0] ?? Infinity) : 0;
    const from = (isPadded ? 1 : 0) + ((this.#flags & http2.PRIORITY) === 0 ? 0 : 5);
    if (this.#id === 0 || from + padding > bytes.length) return false;
    const isLast = (this.#flags & http2.END_STREAM) !== 0;
    const section = bytes.subarray(from, bytes.length - padding);
    if ((this.#flags & http2.END_HEADERS) !== 0) return this.#onSection(this.#id, section, isLast, heard);
    this.#section = { id: this.#id, isLast, collected: new ByteStore(), bytes: 0 };
    return this.#onMore(section, heard);
  }

  #onMore(bytes: Buffer, heard: MuxHeard): boolean {
    const section = this.#section;
    if (section === null) return false;
    section.bytes += http2.HEAD_BYTES + bytes.length;
    if (section.bytes > MOST_SECTION_BYTES) return false;
    section.collected.push(bytes);
    if ((this.#flags & http2.END_HEADERS) === 0) return true;
    this.#section = null;
    const whole = section.collected.peek(MOST_SECTION_BYTES);
    return this.#onSection(section.id, whole, section.isLast, heard);
  }

  #onSection(id: number, section: Uint8Array, isLast: boolean, heard: MuxHeard): boolean {
    try {
      return this.onFields(id, this.#decoder.decode(section), isLast, heard);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return false;
    }
  }

  /** Of a stream; `isLast`: nothing of it follows. */
  protected abstract onFields(
    id: number,
    fields: readonly Field[],
    isLast: boolean,
    heard: MuxHeard,
  ): boolean;

  #onReset(bytes: Buffer, heard: MuxHeard): boolean {
    if (bytes.length !== 4 || this.#id === 0) return false;
    if (bytes.readUInt32BE() === http2.NO_ERROR && this.endsByReset) heard.onFarEnd(this.#id);
    heard.onReset(this.#id);
    return true;
  }

  #onCredit(bytes: Buffer, heard: MuxHeard): boolean {
    if (bytes.length !== 4) return false;
    const more = bytes.readUInt32BE() & MOST_WINDOW;
    if (more === 0) return false;
    if (this.#id !== 0) return heard.onCredit(this.#id, more);
    const wasShut = this.payloadIn(MOST_WINDOW) === 0;
    this.#room += more;
    if (wasShut && this.payloadIn(MOST_WINDOW) > 0) heard.onRoom();
    return this.#room <= MOST_WINDOW;
  }

  #onSettings(bytes: Buffer, heard: MuxHeard): boolean {
    if ((this.#flags & http2.ACK) !== 0) return bytes.length === 0;
    if (bytes.length % 6 !== 0) return false;
    for (let at = 0; at < bytes.length; at += 6)
      if (!this.#onSetting(bytes.readUInt16BE(at), bytes.readUInt32BE(at + 2), heard)) return false;
    heard.say(http2.encodeFrame(http2.SETTINGS, http2.ACK, 0, NOTHING));
    return true;
  }

  #onSetting(name: number, value: number, heard: MuxHeard): boolean {
    if (name === http2.MAX_CONCURRENT_STREAMS) this.#mostStreams = value;
    if (name !== http2.INITIAL_WINDOW_SIZE) return true;
    heard.onFirstWindow(value - this.#sendWindow);
    this.#sendWindow = value;
    return value <= MOST_WINDOW;
  }

  #onPing(bytes: Buffer, heard: MuxHeard): boolean {
    if (bytes.length !== 8) return false;
    const isAnswer = (this.#flags & http2.ACK) !== 0;
    if (isAnswer) this.onPong();
    else heard.say(http2.encodeFrame(http2.PING, http2.ACK, 0, bytes));
    return true;
  }

  protected onPong(): void {}

  /** `lastId`: of the streams that the peer has looked at. */
  protected abstract onGoAway(lastId: number, heard: MuxHeard): void;

  #onGoAway(bytes: Buffer, heard: MuxHeard): boolean {
    if (bytes.length < 8) return false;
    this.onGoAway(bytes.readUInt32BE() & http2.LAST_ID, heard);
    return true;
  }
}
