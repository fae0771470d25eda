import { performance } from "node:perf_hooks";
import { byteAt } from "#lib/at.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import { STATUS_OK } from "#transport/mux/request.ts";
import { MuxStream } from "./mux-stream.ts";
import type { NodeMuxSession } from "./node-mux-session.ts";
import { WantedTurn } from "./wanted-turn.ts";
import type { WireIo } from "./wire.ts";

/** How long the request waits for first bytes to travel with; then it goes alone. */
const OPEN_AFTER_MS = 20;
/** By then a server has answered, or it waits for the end. */
const SILENCE_MS = 1_000;

/** A stream that is opened here. */
export class NodeMuxStream extends MuxStream<NodeMuxSession> {
  readonly outlivesSocket = true;
  readonly wake: () => void;
  id = 0;
  readonly #request: Uint8Array;
  #isAnswered: boolean;
  #openAtMs = Infinity;
  /** When our end is told; 0: at once. */
  #endAtMs = Infinity;
  #isWanted = true;
  readonly #turn = new WantedTurn();

  constructor(session: NodeMuxSession, request: Uint8Array, wake: () => void) {
    super(session);
    this.wake = wake;
    this.#request = request;
    this.#isAnswered = !session.framing.hasRequests;
    session.enter(this);
  }

  /** Without a request of its own it is opened at once: what goes over it has first bytes, which have their own time. */
  begin(io: WireIo): void {
    if (!this.session.framing.hasRequests) return this.#open();
    this.#openAtMs = performance.now() + OPEN_AFTER_MS;
    this.#schedule(io);
  }

  #open(): void {
    this.#openAtMs = Infinity;
    this.id = this.session.open(this, this.#request);
    this.said(this.#request.length);
  }

  #schedule(io: WireIo): void {
    this.#turn.ask(io, Math.min(this.#openAtMs, this.#endAtMs));
  }

  remind(io: WireIo): void {
    this.#turn.remind(io);
  }

  override get readable(): boolean {
    return super.readable || this.#turn.isDue;
  }

  override read(io: WireIo, size: number): number {
    if (this.#turn.isDue) this.#onTime(io);
    const bytes = super.read(io, size);
    if (bytes > 0 && this.#endAtMs !== Infinity && this.#endAtMs !== 0) this.#endLater(io);
    return bytes;
  }

  override available(io: WireIo): number {
    if (this.#turn.isDue) this.#onTime(io);
    return super.available(io);
  }

  #onTime(io: WireIo): void {
    const nowMs = performance.now();
    this.#turn.take();
    if (nowMs >= this.#openAtMs) this.#open();
    if (nowMs < this.#endAtMs) return this.#schedule(io);
    // While a slow reader leaves something here, more may be held up behind it.
    if (this.waitingBytes > 0 && this.#endAtMs !== 0) this.#endLater(io);
    else this.#end();
  }

  arrive(bytes: Uint8Array, from: number, to: number): void {
    if (this.hasLast) return; // behind its own end mark
    const at = this.#isAnswered ? from : this.#takeAnswer(bytes, from);
    this.wake();
    this.keep(bytes, at, to);
  }

  /** One byte, unless its server could not dial. */
  #takeAnswer(bytes: Uint8Array, at: number): number {
    this.#isAnswered = true;
    if (byteAt(bytes, at) !== STATUS_OK) this.onReset();
    this.taken(1);
    return at + 1;
  }

  override onFarEnd(): void {
    if (!this.#isAnswered) this.endAs(BROKEN);
    super.onFarEnd();
  }

  override write(io: WireIo, size: number): number {
    if (this.id === 0 && !this.isCut) this.#open();
    return super.write(io, size);
  }

  override endWriting(io: WireIo): number {
    if (this.id === 0) this.#open();
    if (this.session.framing.isPatient && !this.farEnded) this.#endLater(io);
    else this.sayEnd();
    return 0;
  }

  #endLater(io: WireIo): void {
    this.#endAtMs = performance.now() + SILENCE_MS;
    this.#schedule(io);
  }

  #end(): void {
    this.#endAtMs = Infinity;
    const { framing } = this.session;
    this.sayEnd(
      this.#isWanted && !this.farEnded ? framing.encodeHalfEnd(this.id) : framing.encodeEnd(this.id),
    );
  }

  onUnwanted(): void {
    if (this.#endAtMs === Infinity) return;
    this.#isWanted = false;
    this.#endAtMs = 0;
    this.#turn.askNow();
    this.wake();
  }
}
