import { performance } from "node:perf_hooks";
import { FAULT } from "#platform/linux/relay-calls.ts";
import { REQUEST_BYTES } from "#dataplane/workers/shared/request-memory.ts";
import { SESSION_BYTES } from "#dataplane/workers/shared/slot-tag.ts";
import type { KeptClientStream, KeptSessionHost } from "./kept-client.ts";
import type { MuxSession } from "./mux-session.ts";
import { MuxStream } from "./mux-stream.ts";

/** What a request slot has room for behind the number of the session. */
const MOST_SHOWN_BYTES = REQUEST_BYTES - SESSION_BYTES;

/** A stream that a listener's client has opened, which begins as a connection of its own would. */
export class KeptHttp2Stream extends MuxStream implements KeptClientStream {
  readonly id: number;
  slot = -1;
  readonly openedAtMs = performance.now();
  readonly #host: KeptSessionHost;
  /** It has said something. */
  isNamed = false;
  /** It ends at once, whatever waits. */
  #isLost = false;

  constructor(session: MuxSession, host: KeptSessionHost, id: number) {
    super(session);
    this.#host = host;
    this.id = id;
  }

  /** What waits, as far as it is to be shown. */
  get request(): Uint8Array {
    return this.peek(MOST_SHOWN_BYTES);
  }

  consume(size: number): number {
    return this.skip(size);
  }

  get outlivesSocket(): boolean {
    return !this.#isLost;
  }

  readonly wake = (): void => this.#wake(0);

  #wake(events: number): void {
    if (this.slot >= 0) this.#host.wakeStream(this.slot, events);
  }

  arrive(bytes: Uint8Array, from: number, to: number): void {
    if (this.hasLast) return;
    this.keep(bytes, from, to);
    if (this.isNamed || this.waitingBytes === 0) return this.wake();
    this.isNamed = true;
    if (!this.#host.onStream(this)) this.drop();
  }

  awaitAnswer(): void {} // it says none

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
