import { performance } from "node:perf_hooks";
import { byteAt } from "#lib/at.ts";
import { EAGAIN } from "#platform/linux/relay-calls.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import { STATUS_OK } from "#transport/mux/request.ts";
import { MAX_WINDOW } from "#transport/mux/yamux-frame.ts";
import { ByteStore } from "./byte-store.ts";
import type { SessionStream } from "./mux-framing.ts";
import type { MuxSession } from "./mux-session.ts";
import { WantedTurn } from "./wanted-turn.ts";
import type { Wire, WireIo } from "./wire.ts";

/** How long the request waits for first bytes to travel with; then it goes alone. */
const OPEN_AFTER_MS = 20;
/** By then a server has answered, or it waits for the end. */
const SILENCE_MS = 1_000;

/** One stream of a session, in the slot of its connection, whose socket is the session's. */
export class MuxStream implements Wire, SessionStream {
  readonly fd = -1;
  readonly bareSource = -1;
  readonly bareTarget = -1;
  readonly hungUp = false;
  readonly pending = false;
  readonly outlivesSocket = true;
  readonly wake: () => void;
  readonly #session: MuxSession;
  readonly #request: Uint8Array;
  id = 0;
  endSent = false;
  farEnded = false;
  /** Made when something comes. */
  #arrived: ByteStore | null = null;
  #isAnswered = false;
  /** What follows all that has come; EAGAIN: that is not known yet. */
  #last = EAGAIN;
  /** The peer takes nothing any more. */
  #isRefused = false;
  #sendWindow: number;
  #receiveWindow: number;
  /** Read, and not granted again yet. */
  #credit = 0;
  #openAtMs = Infinity;
  /** When our end is told; 0: at once. */
  #endAtMs = Infinity;
  readonly #turn = new WantedTurn();

  constructor(session: MuxSession, request: Uint8Array, wake: () => void) {
    this.wake = wake;
    this.#session = session;
    this.#request = request;
    this.#sendWindow = session.framing.sendWindow;
    this.#receiveWindow = session.framing.receiveWindow;
    session.enter(this);
  }

  begin(io: WireIo): void {
    this.#openAtMs = performance.now() + OPEN_AFTER_MS;
    this.#schedule(io);
  }

  #open(): void {
    this.#openAtMs = Infinity;
    this.id = this.#session.open(this, this.#request);
    this.#sendWindow -= this.#request.length;
  }

  #schedule(io: WireIo): void {
    this.#turn.ask(io, Math.min(this.#openAtMs, this.#endAtMs));
  }

  remind(io: WireIo): void {
    this.#turn.remind(io);
  }

  get readable(): boolean {
    return this.#unread > 0 || this.#lastNow !== EAGAIN || this.#turn.isDue;
  }

  get #unread(): number {
    return this.#arrived?.size ?? 0;
  }

  get #lastNow(): number {
    return this.#last === EAGAIN && this.#session.isDead ? BROKEN : this.#last;
  }

  get #isCut(): boolean {
    return this.#isRefused || this.#session.isDead;
  }

  get writable(): boolean {
    return this.#isCut || (this.#session.takesData && this.#sendWindow > 0);
  }

  onEvents(): void {} // its socket is not its own

  read(io: WireIo, size: number): number {
    if (this.#turn.isDue) this.#onTime(io);
    const bytes = this.#arrived?.take(io.calls.buffer, size) ?? 0;
    if (bytes === 0) return this.#lastNow;
    this.#session.holds(-bytes);
    this.#taken(bytes);
    if (this.#endAtMs !== Infinity && this.#endAtMs !== 0) this.#endLater(io);
    return bytes;
  }

  available(io: WireIo): number {
    if (this.#turn.isDue) this.#onTime(io);
    return this.#unread || this.#lastNow;
  }

  #onTime(io: WireIo): void {
    const nowMs = performance.now();
    this.#turn.take();
    if (nowMs >= this.#openAtMs) this.#open();
    if (nowMs < this.#endAtMs) return this.#schedule(io);
    // While a slow reader leaves something here, more may be held up behind it.
    if (this.#unread > 0 && this.#endAtMs !== 0) this.#endLater(io);
    else this.#end();
  }

  /** Small amounts are saved up. */
  #taken(bytes: number): void {
    const { framing } = this.#session;
    this.#credit += bytes;
    if (this.#credit < framing.receiveWindow / 2 || this.farEnded) return;
    this.#session.say(framing.encodeCredit(this.id, this.#credit));
    this.#receiveWindow += this.#credit;
    this.#credit = 0;
  }

  arrive(bytes: Uint8Array, from: number, to: number): void {
    if (this.#last !== EAGAIN) return; // behind its own end mark
    const at = this.#isAnswered ? from : this.#takeAnswer(bytes, from);
    this.wake();
    if (at === to || this.#isRefused) return;
    this.#arrived ??= new ByteStore();
    this.#arrived.push(bytes, at, to);
    this.#session.holds(to - at);
  }

  /** One byte, unless its server could not dial. */
  #takeAnswer(bytes: Uint8Array, at: number): number {
    this.#isAnswered = true;
    if (byteAt(bytes, at) !== STATUS_OK) this.onReset();
    this.#taken(1);
    return at + 1;
  }

  spend(bytes: number): boolean {
    this.#receiveWindow -= bytes;
    return this.#receiveWindow >= 0;
  }

  widen(bytes: number): boolean {
    const wasShut = this.#sendWindow <= 0;
    this.#sendWindow += bytes;
    if (wasShut && this.#sendWindow > 0) this.wake();
    return this.#sendWindow <= MAX_WINDOW;
  }

  onFarEnd(): void {
    this.farEnded = true;
    if (this.#last === EAGAIN) this.#last = this.#isAnswered ? 0 : BROKEN;
    this.wake();
  }

  onReset(): void {
    this.#isRefused = true;
    if (this.#last === EAGAIN) this.#last = BROKEN;
    this.wake();
  }

  write(io: WireIo, size: number): number {
    if (this.#isCut) return BROKEN;
    if (this.id === 0) this.#open();
    if (!this.writable) return EAGAIN;
    const taken = this.#session.writeData(io, this.id, size, this.#sendWindow);
    this.#sendWindow -= taken;
    return taken;
  }

  flush(): number {
    return EAGAIN;
  }

  endWriting(io: WireIo): number {
    if (this.id === 0) this.#open();
    if (this.#session.framing.isPatient && !this.farEnded) this.#endLater(io);
    else this.#end();
    return 0;
  }

  #endLater(io: WireIo): void {
    this.#endAtMs = performance.now() + SILENCE_MS;
    this.#schedule(io);
  }

  #end(): void {
    this.#endAtMs = Infinity;
    if (this.endSent || this.#session.isDead) return;
    this.endSent = true;
    this.#session.say(this.#session.framing.encodeEnd(this.id));
  }

  onUnwanted(): void {
    if (this.#endAtMs === Infinity) return;
    this.#endAtMs = 0;
    this.#turn.askNow();
    this.wake();
  }

  drop(): void {
    this.#session.holds(-this.#unread);
    this.#arrived = null;
    this.#session.leave(this);
  }
}
