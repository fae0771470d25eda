import { encodeAnswer, FLAGS_BYTES } from "#transport/mux/request.ts";
import { GRACE_MS } from "#transport/mux/smux-frame.ts";
import { AskedAddress } from "./asked-address.ts";
import type { KeptClientStream } from "./kept-client.ts";
import { KeptOpenedStream } from "./kept-opened-stream.ts";
import type { WireIo } from "./wire.ts";

const SUCCESS = encodeAnswer(null);

/** One that says where it leads to. */
export class KeptMuxStream extends KeptOpenedStream implements KeptClientStream {
  readonly #asked = new AskedAddress(FLAGS_BYTES);
  #keepsReading = false;
  /** Its client has ended both directions. */
  #leftAtMs = Infinity;
  /** It says by itself that its dial has succeeded. */
  #answers = true;

  get request(): Uint8Array {
    return this.#asked.bytes;
  }

  /** It was taken out of the session already. */
  consume(size: number): number {
    return size;
  }

  get isNamed(): boolean {
    return this.#asked.isWhole;
  }

  arrive(bytes: Uint8Array, from: number, to: number): void {
    if (this.hasLast) return; // behind its own end mark
    if (!this.isNamed) return this.#name(bytes, from, to);
    this.keep(bytes, from, to);
    this.wake();
  }

  #name(bytes: Uint8Array, from: number, to: number): void {
    const size = this.#asked.take(bytes.slice(from, Math.min(to, from + this.#asked.mostBytes)));
    if (size < 0) return this.drop();
    this.taken(size);
    if (!this.isNamed) return;
    this.keep(bytes, from + size, to);
    if (!this.host.onStream(this)) this.drop();
  }

  onKeepsReading(): void {
    this.#keepsReading = true;
  }

  override onFarEnd(): void {
    if (this.session.framing.isPatient && !this.#keepsReading) this.#leftAtMs = performance.now();
    super.onFarEnd();
  }

  override write(io: WireIo, size: number): number {
    if (this.#leftAtMs !== Infinity && performance.now() - this.#leftAtMs > GRACE_MS) this.leave();
    return super.write(io, size);
  }

  awaitAnswer(): void {
    this.#answers = false;
  }

  begin(): void {
    if (!this.#answers || this.isCut) return;
    this.session.sayData(this.id, SUCCESS);
    this.said(SUCCESS.length);
  }
}
