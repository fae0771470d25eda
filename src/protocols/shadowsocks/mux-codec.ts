import { ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { toDestination } from "#net/address/ip.ts";
import {
  encodeFrame,
  MAX_CHUNK_BYTES,
  NETWORK_TCP,
  STATUS_END,
  STATUS_KEEP,
  STATUS_NEW,
  takeFrame,
} from "#protocols/shared/mux-cool-frame.ts";

const SESSION = 1;
/** The plugin's server knows where to go; the address only has to be one. */
const ANYWHERE = toDestination("127.0.0.1", 0);

/** One connection in mux.cool frames: what v2ray-plugin's server expects unless its `mux` is 0. */
export class MuxCodec implements StreamCodec {
  readonly #arrived = new ByteQueue();
  #opened = false;

  seal(plain: Buffer): Buffer {
    const frames: Buffer[] = [];
    if (!this.#opened)
      frames.push(
        encodeFrame({ session: SESSION, status: STATUS_NEW, network: NETWORK_TCP, destination: ANYWHERE }),
      );
    this.#opened = true;
    for (let from = 0; from < plain.length; from += MAX_CHUNK_BYTES) {
      const data = plain.subarray(from, from + MAX_CHUNK_BYTES);
      frames.push(encodeFrame({ session: SESSION, status: STATUS_KEEP, data }));
    }
    return Buffer.concat(frames);
  }

  sealEnd(): Buffer {
    const end = encodeFrame({ session: SESSION, status: STATUS_END });
    return this.#opened ? end : Buffer.concat([this.seal(Buffer.alloc(0)), end]);
  }

  open(wire: Buffer, emit: (plain: Buffer | null) => void): void {
    this.#arrived.push(wire);
    for (let frame = takeFrame(this.#arrived); frame !== null; frame = takeFrame(this.#arrived)) {
      if (frame.session !== SESSION) continue;
      if (frame.data !== null && frame.data.length > 0 && frame.status !== STATUS_NEW) emit(frame.data);
      if (frame.status === STATUS_END) return emit(null);
    }
  }

  openEnd(): void {
    if (this.#arrived.length > 0) throw new ProtocolError("the mux stream ended within a frame");
  }
}
