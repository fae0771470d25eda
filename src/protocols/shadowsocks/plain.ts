import type { StreamCodec } from "#net/stream/codec-stream.ts";

const EMPTY = Buffer.alloc(0);

/** Method `none`: the address in clear, then the bytes as they are. A server's codec has an empty `request`. */
export function plainCodec(request: Buffer): StreamCodec {
  let opening = request;
  return {
    get bare() {
      return opening.length === 0;
    },
    seal(plain) {
      if (opening.length === 0) return plain;
      const first = Buffer.concat([opening, plain]);
      opening = EMPTY;
      return first;
    },
    sealEnd: () => (opening.length === 0 ? null : opening),
    open: (wire, emit) => emit(wire),
    openEnd() {}, // any place is good for an end
  };
}
