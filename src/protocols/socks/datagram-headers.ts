import type { Datagram, Destination } from "#core/session.ts";
import { decodeDatagram, encodeDatagramHeader } from "./wire.ts";

/** The headers of one association's datagrams, both ways: most are those of the one before. */
export class DatagramHeaders {
  readonly #prefer: "host" | "ip";
  #decoded: Uint8Array = new Uint8Array();
  #destination: Destination | null = null;
  #encodedFor: Destination | null = null;
  #encoded: Buffer = Buffer.alloc(0);

  /** `prefer` as in `encodeSocksAddress`. */
  constructor(prefer: "host" | "ip") {
    this.#prefer = prefer;
  }

  /** The payload is a view of `bytes`. Null: to be dropped. */
  decode(bytes: Uint8Array): Datagram | null {
    const head = this.#decoded;
    if (this.#destination !== null && startsWith(bytes, head))
      return { payload: bytes.subarray(head.length), destination: this.#destination };
    const item = decodeDatagram(bytes);
    if (item === null) return null;
    this.#decoded = Uint8Array.from(bytes.subarray(0, bytes.length - item.payload.length));
    this.#destination = item.destination;
    return item;
  }

  /** The header before the data. Throws `DialError` for a name that does not fit. */
  encode(destination: Destination): Buffer {
    if (destination === this.#encodedFor) return this.#encoded;
    this.#encoded = encodeDatagramHeader(destination, this.#prefer);
    this.#encodedFor = destination;
    return this.#encoded;
  }
}

/** A header says itself where it ends, so whatever begins with one has it. */
function startsWith(bytes: Uint8Array, head: Uint8Array): boolean {
  if (bytes.length < head.length) return false;
  for (let at = 0; at < head.length; at++) if (bytes[at] !== head[at]) return false;
  return true;
}
