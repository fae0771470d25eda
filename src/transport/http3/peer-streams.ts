/** The streams of one direction that an HTTP/3 client opens (RFC 9114 §6.2, RFC 9204 §4.2). */
import type { Duplex } from "node:stream";
import { ByteQueue } from "#lib/byte-queue.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import {
  H3_CLOSED_CRITICAL_STREAM,
  H3_EXCESSIVE_LOAD,
  H3_FRAME_UNEXPECTED,
  H3_MISSING_SETTINGS,
  H3_STREAM_CREATION_ERROR,
} from "./codes.ts";
import { peekFrame } from "./request.ts";

const CONTROL = 0x00;
const PUSH = 0x01;
const QPACK_ENCODER = 0x02;
const QPACK_DECODER = 0x03;
const SETTINGS_FRAME = 0x04;
/** DATA, HEADERS, PUSH_PROMISE, and those of HTTP/2. */
const NEVER_HERE: ReadonlySet<number> = new Set([0x00, 0x01, 0x02, 0x05, 0x06, 0x08, 0x09]);
/** Settings are a few numbers. */
const MOST_FRAME_BYTES = 4096;

export class PeerStreams {
  /** Ends the connection. */
  readonly #fail: (code: number) => void;
  /** Those that may be there once. */
  readonly #critical = new Set<number>();

  constructor(fail: (code: number) => void) {
    this.#fail = fail;
  }

  take(stream: Duplex): void {
    stream.on("error", () => {});
    const arrived = new ByteQueue();
    const onData = (bytes: Buffer): void => {
      arrived.push(bytes);
      const head = arrived.peekUpTo(8);
      const [first] = head;
      if (first === undefined || head.length < 1 << (first >> 6)) return;
      stream.off("data", onData);
      arrived.skip(1 << (first >> 6));
      this.#begin(new WireReader().reset(head).varint(), stream, arrived);
    };
    stream.on("data", onData);
  }

  #begin(type: number, stream: Duplex, arrived: ByteQueue): void {
    if (type === PUSH) return this.#fail(H3_STREAM_CREATION_ERROR); // a server alone pushes
    if (type !== CONTROL && type !== QPACK_ENCODER && type !== QPACK_DECODER) return void stream.resume();
    if (this.#critical.has(type)) return this.#fail(H3_STREAM_CREATION_ERROR);
    this.#critical.add(type);
    stream.on("close", () => this.#fail(H3_CLOSED_CRITICAL_STREAM));
    stream.on("end", () => this.#fail(H3_CLOSED_CRITICAL_STREAM));
    if (type === CONTROL) new ControlReader(stream, arrived, this.#fail);
    else stream.resume(); // there is no dynamic table
  }
}

/** Of the client's settings nothing is needed: there is no dynamic table, and what we send is short. */
class ControlReader {
  readonly #arrived: ByteQueue;
  readonly #fail: (code: number) => void;
  #hasSettings = false;
  #skipLeft = 0;

  constructor(stream: Duplex, arrived: ByteQueue, fail: (code: number) => void) {
    this.#arrived = arrived;
    this.#fail = fail;
    stream.on("data", (bytes: Buffer) => {
      arrived.push(bytes);
      this.#run();
    });
    this.#run();
  }

  #run(): void {
    for (;;) {
      const skipped = Math.min(this.#skipLeft, this.#arrived.length);
      this.#arrived.skip(skipped);
      this.#skipLeft -= skipped;
      const frame = this.#skipLeft > 0 ? null : peekFrame(this.#arrived);
      if (frame === null) return;
      const { type, headBytes, bytes } = frame;
      if (!this.#hasSettings && type !== SETTINGS_FRAME) return this.#fail(H3_MISSING_SETTINGS);
      if (NEVER_HERE.has(type) || (this.#hasSettings && type === SETTINGS_FRAME))
        return this.#fail(H3_FRAME_UNEXPECTED);
      if (bytes > MOST_FRAME_BYTES) return this.#fail(H3_EXCESSIVE_LOAD);
      this.#hasSettings = true;
      this.#skipLeft = headBytes + bytes;
    }
  }
}
