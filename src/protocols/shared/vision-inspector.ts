import { byteAt } from "#lib/at.ts";
import { type Command, CONTINUE, DIRECT, END } from "./vision-padding.ts";

/** What xtls-rprx-vision wants to know of the stream inside: is it TLS, which version, where do its records end? */

const PIECES = 8;
const SUPPORTED_TLS_13 = Buffer.from("002b00020304", "hex"); // extension supported_versions, length 2, 1.3
const MIN_SERVER_HELLO_BYTES = 79;

/** One per connection, shown the content of both directions in the order in which it passes. */
export class HandshakeInspector {
  #left = PIECES;
  #remaining = 0;
  #cipher = 0;
  isTls = false;
  /** A ServerHello was seen. */
  isTls12OrAbove = false;
  /** The inner session is TLS 1.3 with a cipher for which leaving the outer TLS is agreed. */
  directAllowed = false;

  /** Pieces that are still looked at. */
  get left(): number {
    return this.#left;
  }

  see(piece: Buffer): void {
    if (this.#left === 0 || piece.length === 0) return;
    this.#left--;
    if (piece.length >= 6 && piece[0] === 0x16 && piece[1] === 3) {
      if (piece[5] === 1) this.isTls = true;
      else if (piece[5] === 2 && piece[2] === 3) this.#seeServerHello(piece);
    }
    if (this.#remaining > 0) this.#searchVersion(piece);
  }

  #seeServerHello(piece: Buffer): void {
    this.isTls = true;
    this.isTls12OrAbove = true;
    this.#remaining = piece.readUInt16BE(3) + 5;
    if (piece.length < MIN_SERVER_HELLO_BYTES) return;
    const at = 43 + byteAt(piece, 43) + 1;
    if (at + 2 <= piece.length) this.#cipher = piece.readUInt16BE(at);
  }

  #searchVersion(piece: Buffer): void {
    const looked = piece.subarray(0, this.#remaining);
    this.#remaining -= looked.length;
    if (looked.includes(SUPPORTED_TLS_13)) {
      // 0x1305 (CCM_8) is left out by all peers.
      this.directAllowed = this.#cipher >= 0x1301 && this.#cipher <= 0x1304;
    } else if (this.#remaining > 0) return;
    this.#remaining = 0;
    this.#left = 0;
  }
}

const HEADER_BYTES = 5;
const APPLICATION_DATA = 0x17;
const MAX_RECORD_BYTES = 16_384 + 2048;

/** Follows the records of one direction from its first byte, whatever pieces it comes in. */
export class RecordTracker {
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerSize = 0;
  #bodyLeft = 0;
  /** The stream is not made of TLS records. */
  lost = false;

  /**
   * Follows this piece. Where `stop` is set, answers with the offset behind the first application-data record that ends
   * in it and looks no further; -1: none does.
   */
  follow(piece: Uint8Array, stop: boolean): number {
    let at = 0;
    while (at < piece.length && !this.lost) {
      if (this.#headerSize < HEADER_BYTES) {
        this.#header[this.#headerSize++] = byteAt(piece, at++);
        if (this.#headerSize === HEADER_BYTES) this.#startRecord();
        continue;
      }
      const taken = Math.min(piece.length - at, this.#bodyLeft);
      this.#bodyLeft -= taken;
      at += taken;
      if (this.#bodyLeft > 0) break;
      this.#headerSize = 0;
      if (stop && this.#header[0] === APPLICATION_DATA) return at;
    }
    return -1;
  }

  #startRecord(): void {
    const [type, major] = [byteAt(this.#header, 0), this.#header[1]];
    this.#bodyLeft = this.#header.readUInt16BE(3);
    this.lost =
      type < 0x14 || type > 0x17 || major !== 3 || this.#bodyLeft < 1 || this.#bodyLeft > MAX_RECORD_BYTES;
  }
}

/** Where the padding of our own direction ends. */
export class PaddingEnd {
  /** How the blocks of the latest piece end. */
  command: Command = CONTINUE;
  readonly #inspector: HandshakeInspector;
  readonly #tracker = new RecordTracker();

  /** The inspector sees the other direction, too. */
  constructor(inspector: HandshakeInspector) {
    this.#inspector = inspector;
  }

  /** Looks at the next piece, and answers with how many bytes of it still go in blocks. */
  find(piece: Buffer): number {
    this.#inspector.see(piece);
    const { isTls, isTls12OrAbove, directAllowed, left } = this.#inspector;
    const versionKnown = isTls12OrAbove && left === 0;
    const end = this.#tracker.lost ? -1 : this.#tracker.follow(piece, isTls && versionKnown);
    const handshakeOver = end >= 0;
    const isPlain = (!isTls12OrAbove && left <= 1) || (this.#tracker.lost && left === 0);
    if (handshakeOver && directAllowed) this.command = DIRECT;
    else this.command = handshakeOver || isPlain ? END : CONTINUE;
    return this.command === DIRECT ? end : piece.length;
  }
}
