/** TLS: the name in a ClientHello, however it is cut into records and segments. */
import { HANDSHAKE_HEADER_BYTES, helloHost, helloSize } from "./client-hello.ts";
import type { Probe, SniffProtocol, Verdict } from "./probe.ts";
import { byteAt } from "#lib/at.ts";

const HANDSHAKE = 22;
const MAX_MINOR_VERSION = 4;
const MAX_RECORD_BYTES = 16 * 1024;
const RECORD_HEADER_BYTES = 5;

/**
 * TLSPlaintext (RFC 8446 §5.1): TYPE(1)=22 VERSION(2)=3.x LENGTH(2) FRAGMENT. The message may span records; a record of
 * no bytes is not allowed.
 */
class TlsProbe implements Probe {
  readonly #header = new Uint8Array(RECORD_HEADER_BYTES);
  #headerSize = 0;
  /** Bytes of the present record that are still to come. */
  #left = 0;
  #message: Uint8Array = new Uint8Array(HANDSHAKE_HEADER_BYTES);
  #messageSize = 0;

  feed(bytes: Uint8Array): Verdict {
    for (let at = 0; at < bytes.length;) {
      if (this.#left === 0) {
        this.#header[this.#headerSize++] = byteAt(bytes, at++);
        if (!this.#headerFits()) return "other";
        continue;
      }
      const room = this.#message.length - this.#messageSize;
      const piece = bytes.subarray(at, at + Math.min(this.#left, room));
      this.#message.set(piece, this.#messageSize);
      this.#messageSize += piece.length;
      this.#left -= piece.length;
      at += piece.length;
      const verdict = this.#look();
      if (verdict !== "more") return verdict;
    }
    return "more";
  }

  /** Refuses at the first byte that no record of a ClientHello has. */
  #headerFits(): boolean {
    const [type, major, minor = 0] = this.#header;
    const known = this.#headerSize;
    if (type !== HANDSHAKE || (known > 1 && major !== 3)) return false;
    if (known > 2 && minor > MAX_MINOR_VERSION) return false;
    if (known < RECORD_HEADER_BYTES) return true;
    this.#left = (byteAt(this.#header, 3) << 8) | byteAt(this.#header, 4);
    this.#headerSize = 0;
    return this.#left > 0 && this.#left <= MAX_RECORD_BYTES;
  }

  /** The buffer has room for the message's header, then for exactly the message. */
  #look(): Verdict {
    const size = helloSize(this.#message.subarray(0, this.#messageSize));
    if (size === -1) return "other";
    if (size === null || this.#messageSize < HANDSHAKE_HEADER_BYTES) return "more";
    if (this.#message.length < size) {
      const grown = new Uint8Array(size);
      grown.set(this.#message);
      this.#message = grown;
    }
    return this.#messageSize < size ? "more" : helloHost(this.#message);
  }
}

export const tls: SniffProtocol = { type: "TLS", network: "tcp", open: () => new TlsProbe() };
