/**
 * The way out of VLESS Encryption for what is encrypted already (xtls-rprx-vision). Records are left behind; where their
 * headers were masked, those of the records inside are masked on by the same key streams, so nothing looks like TLS.
 */
import type { Cipheriv } from "node:crypto";
import { Duplex } from "node:stream";
import type { Bypass, RawSink } from "#core/tls-bypass.ts";
import { openStream } from "#net/stream/departing-stream.ts";
import { RecordStream } from "#transport/record-stream.ts";
import { RecordCodec, type RecordSides } from "./records.ts";

const HEADER_BYTES = 5;

/** A stream behind the handshake. */
export interface Encrypted {
  readonly stream: Duplex;
  /** Null: it was not asked for. */
  readonly bypass: Bypass | null;
}

/** `mayLeave`: the protocol inside may leave the records behind. */
export function openEncrypted(wire: Duplex, sides: RecordSides, mayLeave: boolean): Encrypted {
  const codec = new RecordCodec(sides);
  if (!mayLeave) return { stream: openStream(wire, codec, {}), bypass: null };
  const stream = new RecordStream(wire, codec);
  return { stream, bypass: codec.outwardMask === null ? stream : new MaskedBypass(stream, codec) };
}

class MaskedBypass implements Bypass {
  /** It is never left to others. */
  readonly below = null;
  readonly #stream: RecordStream;
  readonly #codec: RecordCodec;

  constructor(stream: RecordStream, codec: RecordCodec) {
    this.#stream = stream;
    this.#codec = codec;
  }

  leaveRead(sink: RawSink): void {
    const mask = new HeaderMask(known(this.#codec.inwardMask), "unmasks");
    this.#stream.leaveRead({ data: (bytes) => sink.data(mask.apply(bytes)), end: () => sink.end() });
  }

  leaveWrite(): Duplex {
    return new MaskedWriter(
      this.#stream.leaveWrite(),
      new HeaderMask(known(this.#codec.outwardMask), "masks"),
    );
  }

  hold(): void {
    this.#stream.hold();
  }

  release(): void {
    this.#stream.release();
  }

  destroy(error?: Error): void {
    this.#stream.destroy(error);
  }
}

/** A direction is left behind a record of it. */
function known(mask: Cipheriv | null): Cipheriv {
  if (mask === null) throw new Error("no record has gone this way yet");
  return mask;
}

/** Masks or unmasks the headers of records TYPE(1) VERSION(2) LENGTH(2) CONTENT(length) in a stream of any pieces. */
export class HeaderMask {
  readonly #cipher: Cipheriv;
  readonly #masks: boolean;
  /** The present header, plain, as far as it has come. */
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  /** Of the present content. */
  #left = 0;

  constructor(cipher: Cipheriv, way: "masks" | "unmasks") {
    this.#cipher = cipher;
    this.#masks = way === "masks";
  }

  /** A copy. */
  apply(bytes: Buffer): Buffer {
    const out = Buffer.from(bytes);
    for (let at = 0; at < out.length;) {
      const skipped = Math.min(this.#left, out.length - at);
      this.#left -= skipped;
      at += skipped;
      const piece = out.subarray(at, at + HEADER_BYTES - this.#headerBytes);
      at += piece.length;
      this.#take(piece);
    }
    return out;
  }

  #take(piece: Buffer): void {
    const changed = this.#cipher.update(piece);
    (this.#masks ? piece : changed).copy(this.#header, this.#headerBytes);
    changed.copy(piece);
    this.#headerBytes += piece.length;
    if (this.#headerBytes < HEADER_BYTES) return;
    this.#headerBytes = 0;
    // As peers read it: what is no header has no content, and the next five bytes are tried.
    this.#left = this.#header.readUIntBE(0, 3) === 0x170303 ? this.#header.readUInt16BE(3) : 0;
  }
}

/** Writes to the stream below through a mask; reads nothing. */
class MaskedWriter extends Duplex {
  readonly #below: Duplex;
  readonly #mask: HeaderMask;
  #afterDrain: ((error?: Error | null) => void) | null = null;

  constructor(below: Duplex, mask: HeaderMask) {
    super({ autoDestroy: false });
    this.#below = below;
    this.#mask = mask;
    below.on("error", (error) => this.destroy(error));
    below.on("close", () => this.destroy());
    below.on("drain", () => {
      const done = this.#afterDrain;
      this.#afterDrain = null;
      done?.();
    });
  }

  override _read(): void {}

  override _write(bytes: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.#below.write(this.#mask.apply(bytes))) done();
    else this.#afterDrain = done;
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#below.end(done);
  }
}
