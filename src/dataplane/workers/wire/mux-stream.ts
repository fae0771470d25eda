import { EAGAIN, EPIPE } from "#platform/linux/relay-calls.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import { ProtocolError } from "#core/errors.ts";
import type { ByteStore } from "./byte-store.ts";
import type { MuxBody, SessionStream } from "./mux-framing.ts";
import type { MuxSession } from "./mux-session.ts";
import type { Wire, WireIo } from "./wire.ts";

const NOTHING = new Uint8Array(0);

/** One stream of a session, in the slot of its connection, whose socket is the session's. */
export abstract class MuxStream<Session extends MuxSession = MuxSession> implements Wire, SessionStream {
  readonly fd = -1;
  readonly bareSource = -1;
  readonly bareTarget = -1;
  readonly hungUp = false;
  readonly pending = false;
  abstract readonly outlivesSocket: boolean;
  abstract readonly wake: () => void;
  abstract readonly id: number;
  protected readonly session: Session;
  endSent = false;
  farEnded = false;
  /** Null: nothing waits. */
  #arrived: ByteStore | null = null;
  /** What follows all that has come; EAGAIN: that is not known yet. */
  #last = EAGAIN;
  isReset = false;
  /** Nothing more is taken, or wanted. */
  #isRefused = false;
  #sendWindow: number;
  #receiveWindow: number;
  /** Read, and not granted again yet. */
  #credit = 0;
  /** Null: what comes is the data. */
  readonly #body: MuxBody | null;

  constructor(session: Session) {
    this.session = session;
    this.#sendWindow = session.firstWindow;
    this.#receiveWindow = session.framing.receiveWindow;
    this.#body = session.framing.newBody((bytes, from, to) => this.#store(bytes, from, to));
  }

  abstract arrive(bytes: Uint8Array, from: number, to: number): void;

  get readable(): boolean {
    return this.waitingBytes > 0 || this.#lastNow !== EAGAIN;
  }

  protected get waitingBytes(): number {
    return this.#arrived?.size ?? 0;
  }

  /** Nothing that still comes is wanted. */
  protected get hasLast(): boolean {
    return this.#last !== EAGAIN;
  }

  get #lastNow(): number {
    return this.#last === EAGAIN && this.session.isDead ? BROKEN : this.#last;
  }

  protected get isCut(): boolean {
    return this.#isRefused || this.session.isDead;
  }

  get writable(): boolean {
    return this.isCut || (this.session.takesData && this.#payload > 0);
  }

  /** Bytes of data that may go out now. */
  get #payload(): number {
    return this.session.framing.payloadIn(this.#sendWindow);
  }

  onEvents(): void {} // its socket is not its own

  read(io: WireIo, size: number): number {
    const arrived = this.#arrived;
    if (arrived === null) return this.#lastNow;
    return this.#took(arrived, arrived.take(io.calls.buffer, size));
  }

  #took(arrived: ByteStore, bytes: number): number {
    if (arrived.size === 0) {
      this.#arrived = null;
      this.session.memory.giveStore(arrived);
    }
    this.session.holds(-bytes);
    this.taken(bytes);
    return bytes;
  }

  available(_io: WireIo): number {
    return this.waitingBytes || this.#lastNow;
  }

  /** The first bytes of what waits. */
  protected peek(most: number): Uint8Array {
    return this.#arrived?.peek(most) ?? NOTHING;
  }

  /** Takes so many bytes of what waits away, or as many as there are: how many. */
  protected skip(size: number): number {
    const arrived = this.#arrived;
    return arrived === null ? 0 : this.#took(arrived, arrived.skip(size));
  }

  /** Small amounts are saved up. */
  taken(bytes: number): void {
    const { framing } = this.session;
    this.#credit += bytes;
    if (this.#credit < framing.receiveWindow / 2 || this.farEnded || this.isReset) return;
    this.session.say(framing.encodeCredit(this.id, this.#credit));
    this.#receiveWindow += this.#credit;
    this.#credit = 0;
  }

  /** Until its reader has its turn. */
  protected keep(bytes: Uint8Array, from: number, to: number): void {
    if (this.#body === null) return this.#store(bytes, from, to);
    const before = this.waitingBytes;
    try {
      this.#body.take(bytes, from, to);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      return this.onReset();
    }
    this.taken(to - from - (this.waitingBytes - before)); // the rest is no data
  }

  #store(bytes: Uint8Array, from: number, to: number): void {
    if (from === to || this.#isRefused) return;
    this.#arrived ??= this.session.memory.takeStore();
    this.#arrived.push(bytes, from, to);
    this.session.holds(to - from);
  }

  spend(bytes: number): boolean {
    this.#receiveWindow -= bytes;
    return this.#receiveWindow >= 0;
  }

  widen(bytes: number): boolean {
    const wasShut = this.#payload <= 0;
    this.#sendWindow += bytes;
    if (wasShut && this.#payload > 0) this.wake();
    const { framing, windowChange } = this.session;
    return this.#sendWindow + windowChange <= framing.mostWindow;
  }

  /** So many bytes of data went out. */
  protected said(bytes: number): void {
    this.#sendWindow -= this.session.framing.spend(bytes);
  }

  onFarEnd(): void {
    this.farEnded = true;
    this.endAs(0);
    this.wake();
  }

  /** What is read behind all that has come. */
  protected endAs(last: number): void {
    if (this.#last === EAGAIN) this.#last = last;
  }

  onReset(): void {
    this.#isRefused = true;
    this.endAs(BROKEN);
    this.wake();
  }

  onLost(): void {
    this.wake();
  }

  write(io: WireIo, size: number): number {
    // What was said before its end is still to be read.
    if (this.isCut) return this.isReset && this.#last === 0 ? EPIPE : BROKEN;
    if (!this.writable) return EAGAIN;
    const taken = this.session.writeData(io, this.id, size, this.#payload);
    this.said(taken);
    return taken;
  }

  flush(): number {
    return EAGAIN;
  }

  endWriting(_io: WireIo): number {
    this.sayEnd();
    return 0;
  }

  protected sayEnd(frame = this.session.framing.encodeEnd(this.id)): void {
    if (this.endSent || this.isReset || this.session.isDead) return;
    this.endSent = true;
    this.session.say(frame);
  }

  /** It fails, and what has come is thrown away. */
  protected cut(): void {
    this.#isRefused = true;
    this.#last = BROKEN;
    this.#forget();
  }

  #forget(): void {
    this.session.holds(-this.waitingBytes);
    this.#arrived = null;
  }

  drop(): void {
    this.#forget();
    this.session.leave(this);
  }
}
