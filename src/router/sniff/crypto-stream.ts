import { helloHost, helloSize, MAX_HELLO_BYTES } from "./client-hello.ts";
import type { Verdict } from "./probe.ts";

/** Pieces with gaps between them; clients that cut a hello on purpose make about thirty. One more is not kept. */
const MAX_ISLANDS = 64;
/** Pieces of one stream, repeated ones included: each costs time, and a datagram has room for thousands of a byte. */
const MAX_PIECES = 512;

interface Island {
  from: number;
  to: number;
}

/** The handshake bytes of CRYPTO frames (RFC 9000 §19.6), in any order, repeated, overlapping. */
export class CryptoStream {
  /** Grows up to the longest hello that is looked at; later bytes are not kept. */
  #bytes = new Uint8Array(1024);
  /** Ascending, none touching the next. */
  #islands: Island[] = [];
  #pieces = 0;

  add(offset: number, data: Uint8Array): void {
    const to = Math.min(offset + data.length, MAX_HELLO_BYTES);
    if (to <= offset || ++this.#pieces > MAX_PIECES) return;
    const apart = this.#islands.filter((island) => island.to < offset || island.from > to);
    if (apart.length >= MAX_ISLANDS) return;
    this.#grow(to);
    this.#bytes.set(data.subarray(0, to - offset), offset);
    const touched = this.#islands.filter((island) => island.to >= offset && island.from <= to);
    const merged = {
      from: Math.min(offset, ...touched.map(({ from }) => from)),
      to: Math.max(to, ...touched.map((island) => island.to)),
    };
    this.#islands = [...apart, merged].sort((a, b) => a.from - b.from);
  }

  verdict(): Verdict {
    const [first] = this.#islands;
    if (first === undefined || first.from > 0) return "more";
    const known = this.#bytes.subarray(0, first.to);
    const size = helloSize(known);
    if (size === -1) return "other";
    return size === null || size > known.length ? "more" : helloHost(known.subarray(0, size));
  }

  #grow(size: number): void {
    if (size <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.min(MAX_HELLO_BYTES, Math.max(size, this.#bytes.length * 2)));
    grown.set(this.#bytes);
    this.#bytes = grown;
  }
}
