/** The ClientHello of TLS, which QUIC carries, too. */
import { hostVerdict } from "./host-name.ts";
import type { Verdict } from "./probe.ts";
import { byteAt } from "#lib/at.ts";

/** Real ones are below 4 KiB, post-quantum keys included; a longer one is not looked at. */
export const MAX_HELLO_BYTES = 16 * 1024;
export const HANDSHAKE_HEADER_BYTES = 4;

const CLIENT_HELLO = 1;
const RANDOM_BYTES = 32;
const SERVER_NAME = 0;
const HOST_NAME = 0;

/**
 * The size of the message that starts here, its header included; null: not known yet; -1: no ClientHello, or too long.
 * Handshake (RFC 8446 §4): TYPE(1) LENGTH(3) BODY.
 */
export function helloSize(bytes: Uint8Array): number | null {
  if (bytes.length > 0 && bytes[0] !== CLIENT_HELLO) return -1;
  if (bytes.length < HANDSHAKE_HEADER_BYTES) return null;
  const size = HANDSHAKE_HEADER_BYTES + ((byteAt(bytes, 1) << 16) | read16(bytes, 2));
  return size > MAX_HELLO_BYTES ? -1 : size;
}

/** Reads what lies within a bound; beyond it every number is -1 and every piece empty, so nothing is read past the end. */
class Cursor {
  readonly #bytes: Uint8Array;
  #at: number;
  #end: number;

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.#bytes = bytes;
    this.#at = at;
    this.#end = Math.min(end, bytes.length);
  }

  get left(): number {
    return this.#end - this.#at;
  }

  number(size: 1 | 2): number {
    if (this.left < size) return -1;
    const value = size === 1 ? byteAt(this.#bytes, this.#at) : read16(this.#bytes, this.#at);
    this.#at += size;
    return value;
  }

  /** Null where so much is not there. */
  piece(size: number): Cursor | null {
    if (size < 0 || this.left < size) return null;
    const part = new Cursor(this.#bytes, this.#at, this.#at + size);
    this.#at += size;
    return part;
  }

  text(): string {
    return Buffer.from(this.#bytes.subarray(this.#at, this.#end)).toString("latin1");
  }
}

/**
 * The name in `server_name` of a whole message.
 *
 * ClientHello (RFC 8446 §4.1.2): VERSION(2) RANDOM(32) SESSION_ID(1+n) CIPHER_SUITES(2+n) COMPRESSION(1+n)
 * EXTENSIONS(2+n), each TYPE(2) DATA(2+n).
 */
export function helloHost(message: Uint8Array): Verdict {
  const body = new Cursor(message, HANDSHAKE_HEADER_BYTES, message.length);
  body.piece(2 + RANDOM_BYTES);
  body.piece(body.number(1));
  body.piece(body.number(2));
  body.piece(body.number(1));
  const extensions = body.piece(body.number(2));
  while (extensions !== null && extensions.left > 0) {
    const type = extensions.number(2);
    const data = extensions.piece(extensions.number(2));
    if (data === null) return "other";
    if (type === SERVER_NAME) return serverName(data);
  }
  return "other";
}

/** server_name (RFC 6066 §3): LIST(2+n) of TYPE(1) NAME(2+n). */
function serverName(data: Cursor): Verdict {
  const list = data.piece(data.number(2));
  while (list !== null && list.left > 0) {
    const type = list.number(1);
    const name = list.piece(list.number(2));
    if (name === null) return "other";
    if (type === HOST_NAME) return hostVerdict(name.text());
  }
  return "other";
}

function read16(bytes: Uint8Array, at: number): number {
  return (byteAt(bytes, at) << 8) | byteAt(bytes, at + 1);
}
