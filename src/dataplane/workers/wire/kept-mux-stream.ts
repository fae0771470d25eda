import { performance } from "node:perf_hooks";
import { FAULT } from "#platform/linux/relay-calls.ts";
import { encodeAnswer, FLAGS_BYTES } from "#transport/mux/request.ts";
import { AskedAddress } from "./asked-address.ts";
import type { KeptClientStream, KeptSessionHost } from "./kept-client.ts";
import type { MuxSession } from "./mux-session.ts";
import { MuxStream } from "./mux-stream.ts";

const SUCCESS = encodeAnswer(null);

/** A stream that a listener's client has opened. */
export class KeptMuxStream extends MuxStream implements KeptClientStream {
  readonly id: number;
  slot = -1;
  readonly openedAtMs = performance.now();
  readonly #host: KeptSessionHost;
  readonly #asked = new AskedAddress(FLAGS_BYTES);
  /** It says by itself that its dial has succeeded. */
  #answers = true;
  /** It ends at once, whatever waits. */
  #isLost = false;

  constructor(session: MuxSession, host: KeptSessionHost, id: number) {
    super(session);
    this.#host = host;
    this.id = id;
  }

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

  get outlivesSocket(): boolean {
    return !this.#isLost;
  }

  readonly wake = (): void => this.#wake(0);

  #wake(events: number): void {
    if (this.slot >= 0) this.#host.wakeStream(this.slot, events);
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
    if (!this.#host.onStream(this)) this.drop();
  }

  awaitAnswer(): void {
    this.#answers = false;
  }

  begin(): void {
    if (!this.#answers || this.isCut) return;
    this.session.sayData(this.id, SUCCESS);
    this.said(SUCCESS.length);
  }

  override onFarEnd(): void {
    if (this.isNamed) super.onFarEnd();
    else this.drop(); // it wants nothing
  }

  override onReset(): void {
    if (!this.isNamed) return this.drop();
    this.#isLost = true;
    this.cut();
    this.#wake(FAULT);
  }

  override onLost(): void {
    this.onReset();
  }

  override drop(): void {
    super.drop();
    this.slot = -1;
  }
}
