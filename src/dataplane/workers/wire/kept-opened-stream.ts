import { performance } from "node:perf_hooks";
import { FAULT } from "#platform/linux/relay-calls.ts";
import type { KeptSessionHost } from "./kept-client.ts";
import type { MuxSession } from "./mux-session.ts";
import { MuxStream } from "./mux-stream.ts";

/** A stream that a listener's client has opened. */
export abstract class KeptOpenedStream extends MuxStream {
  readonly id: number;
  slot = -1;
  readonly openedAtMs = performance.now();
  protected readonly host: KeptSessionHost;
  /** It ends at once, whatever waits. */
  #isLost = false;

  constructor(session: MuxSession, host: KeptSessionHost, id: number) {
    super(session);
    this.host = host;
    this.id = id;
  }

  /** It has said where it leads to, or something. */
  abstract readonly isNamed: boolean;

  get outlivesSocket(): boolean {
    return !this.#isLost;
  }

  readonly wake = (): void => this.#wake(0);

  #wake(events: number): void {
    if (this.slot >= 0) this.host.wakeStream(this.slot, events);
  }

  override onFarEnd(): void {
    if (this.isNamed) super.onFarEnd();
    else this.drop(); // it wants nothing
  }

  override onReset(): void {
    if (!this.isNamed) return this.drop();
    this.leave();
    this.#wake(FAULT);
  }

  /** It fails with what waits. */
  protected leave(): void {
    this.#isLost = true;
    this.cut();
  }

  override onLost(): void {
    this.onReset();
  }

  override drop(): void {
    super.drop();
    this.slot = -1;
  }
}
