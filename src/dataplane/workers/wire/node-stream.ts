import { performance } from "node:perf_hooks";
import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import type { NodeSession, SessionEvents } from "./node-session.ts";
import { WantedTurn } from "./wanted-turn.ts";
import type { Wire, WireIo } from "./wire.ts";

/** How long what opens a stream waits for first bytes to travel with: a client behind a proxy answers at once, or waits itself. */
const OPEN_AFTER_MS = 10;
/** A local end waits so long without data from the peer, because the FIN that says it would cut an answer off. */
const LINGER_MS = 1_000;
/** Without the server's answer by then, the idle session that was used again is dead. */
const ANSWER_MS = 3_000;
/** A stream whose session died needs another one within this time. */
const RESCUE_MS = 10_000;
/** What the client may still have to say when the server has ended the stream; then the connection is over. */
const GRACE_MS = 1_000;
/** Bytes that are kept until the server has answered, to be sent again through another session; more have to wait. */
const MAX_UNCONFIRMED = 64 * 1024;

/** What the thread does for a stream: its socket is that of the connection's slot. */
export interface StreamPlace {
  /** The session serves no stream any more, and is the thread's with its socket. */
  release(session: NodeSession): void;
  /** The session is over: its socket is closed. */
  discard(session: NodeSession): void;
  /** Another session to the same server, in place of one that was discarded. Null: it cannot be had. */
  redial(): Redial | null;
  /** None will be asked for any more. */
  settle(): void;
}

/** A session that is being opened. */
export interface Redial {
  /** The kernel's events of its socket, epoll(7) bits. */
  onEvents(events: number): void;
  /** Null: not yet. "failed": it does not come about, and nothing is left of it. */
  advance(): NodeSession | "failed" | null;
  drop(): void;
}

/**
 * One stream of a session, in the slot of its connection. On a session that had been idle it outlives that session's death,
 * if the server never answered: then it goes on in another one. Either side's FIN ends both directions.
 */
export class NodeStream implements Wire, SessionEvents {
  readonly fd = -1;
  readonly bareSource = -1;
  readonly bareTarget = -1;
  readonly hungUp = false;
  readonly outlivesSocket = true;
  readonly #target: Uint8Array;
  readonly #place: StreamPlace;
  /** Null: it is over for both sides, or another one is being opened. */
  #session: NodeSession | null;
  #redial: Redial | null = null;
  #isOpened = false;
  /** What may have to be sent again; null: the server has answered, or is not expected to. */
  #unconfirmed: Uint8Array[] | null;
  #unconfirmedBytes = 0;
  /** The client has ended. */
  #isEnding = false;
  /** The result of all further reads; null: reading goes on. */
  #last: number | null = null;
  #openAtMs = Infinity;
  /** When the server has to have answered, or the other session to be there. */
  #timeoutAtMs = Infinity;
  /** 0: nothing that still comes is wanted. */
  #lingerAtMs = Infinity;
  #graceAtMs = Infinity;
  readonly #turn = new WantedTurn();
  /** The socket of the other session has news. */
  #hasNews = false;

  constructor(session: NodeSession, target: Uint8Array, place: StreamPlace) {
    this.#session = session;
    this.#target = target;
    this.#place = place;
    this.#unconfirmed = session.answers ? [] : null;
    session.open(this);
  }

  begin(io: WireIo): void {
    const nowMs = performance.now();
    if (this.#session?.opensAlone === true) this.#open(io, this.#session);
    else this.#openAtMs = nowMs + OPEN_AFTER_MS;
    if (this.#unconfirmed !== null) this.#timeoutAtMs = nowMs + ANSWER_MS;
    this.#schedule(io);
  }

  #open(io: WireIo, session: NodeSession): void {
    this.#isOpened = true;
    this.#openAtMs = Infinity;
    session.sayOpening(io, this.#target); // a failure shows when it is read
  }

  remind(io: WireIo): void {
    this.#turn.remind(io);
  }

  get readable(): boolean {
    if (this.#last !== null || this.#hasNews || this.#turn.isDue) return true;
    const session = this.#session;
    return session !== null && (session.isDead || session.inner.readable);
  }

  get writable(): boolean {
    if (this.#unconfirmed !== null && this.#unconfirmedBytes > MAX_UNCONFIRMED) return false;
    return this.#session?.inner.writable ?? this.#redial === null;
  }

  get pending(): boolean {
    return this.#session?.pending === true;
  }

  isOver(io: WireIo): boolean {
    if (this.#turn.isDue) this.#turn.take();
    this.#schedule(io); // an earlier turn may have been granted for something else
    return this.#graceAtMs !== Infinity && performance.now() >= this.#graceAtMs;
  }

  onEvents(events: number): void {
    this.#session?.inner.onEvents(events);
    this.#redial?.onEvents(events);
    this.#hasNews = this.#redial !== null;
  }

  flush(io: WireIo): number {
    const session = this.#session;
    return session === null ? EINTR : session.flush(io);
  }

  read(io: WireIo, size: number): number {
    const session = this.#present(io);
    return session === null ? (this.#last ?? EAGAIN) : this.#see(io, session, session.read(io, size), true);
  }

  available(io: WireIo): number {
    const session = this.#present(io);
    return session === null ? (this.#last ?? EAGAIN) : this.#see(io, session, session.available(io), false);
  }

  /** The session to read from now; null: there is none, or nothing is read any more. */
  #present(io: WireIo): NodeSession | null {
    if (this.#last !== null) return null;
    if (this.#redial !== null) this.#advance(io, this.#redial);
    if (this.#turn.isDue) this.#onTime(io);
    return this.#last === null ? this.#session : null;
  }

  /** What an attempt to read came to. */
  #see(io: WireIo, session: NodeSession, bytes: number, isRead: boolean): number {
    if (bytes > 0) {
      this.#confirm();
      if (this.#lingerAtMs !== Infinity && this.#lingerAtMs !== 0) this.#lingerOn(io);
    }
    if (this.#graceAtMs !== Infinity) this.#leave(io, session);
    if (bytes > 0 && (isRead || this.#last === null)) return bytes;
    if (this.#last !== null) return this.#last;
    if (bytes !== EAGAIN && bytes !== EINTR) return this.#lost(io, session, bytes);
    if (session.isDead) return this.#lost(io, session, BROKEN);
    return bytes === EAGAIN && this.#isSilent ? this.#end(io, session) : bytes;
  }

  onAnswer(problem: string): void {
    if (problem === "") this.#confirm();
    else this.#last = BROKEN; // it could not dial
  }

  onFarEnd(): void {
    this.#confirm();
    this.#last = 0;
    this.#graceAtMs = performance.now() + GRACE_MS;
  }

  #confirm(): void {
    if (this.#unconfirmed === null) return;
    this.#unconfirmed = null;
    this.#timeoutAtMs = Infinity;
    this.#place.settle();
  }

  /** The session has failed. EAGAIN: another one is being opened. */
  #lost(io: WireIo, session: NodeSession, errno: number): number {
    if (this.#unconfirmed === null) return (this.#last = errno);
    this.#session = null;
    this.#place.discard(session);
    this.#redial = this.#place.redial();
    if (this.#redial === null) return (this.#last = BROKEN);
    this.#openAtMs = this.#lingerAtMs = Infinity;
    this.#timeoutAtMs = performance.now() + RESCUE_MS;
    this.#schedule(io);
    return EAGAIN;
  }

  #advance(io: WireIo, redial: Redial): void {
    this.#hasNews = false;
    const session = redial.advance();
    if (session === null) return;
    this.#redial = null;
    if (session === "failed") this.#last = BROKEN;
    else this.#goOn(io, session);
  }

  /** In another session, with what was said in the one before. */
  #goOn(io: WireIo, session: NodeSession): void {
    const kept = this.#unconfirmed ?? [];
    this.#session = session;
    session.open(this);
    this.#open(io, session);
    for (const piece of kept) {
      io.calls.buffer.set(piece);
      session.writeData(io, piece.length, null);
    }
    this.#confirm();
    if (this.#isEnding) this.#lingerOn(io);
  }

  #onTime(io: WireIo): void {
    const [nowMs, session] = [performance.now(), this.#session];
    this.#turn.take();
    if (nowMs >= this.#openAtMs && session !== null) this.#open(io, session);
    if (nowMs >= this.#timeoutAtMs) this.#timedOut(io, session);
    else if (this.#lingerAtMs === 0 && session !== null) this.#end(io, session);
    this.#schedule(io);
  }

  /** The peer has had its time. Only behind a read that found nothing: what has come may have waited for a slow client. */
  get #isSilent(): boolean {
    return this.#lingerAtMs !== Infinity && performance.now() >= this.#lingerAtMs;
  }

  #end(io: WireIo, session: NodeSession): number {
    this.#leave(io, session);
    return (this.#last = 0);
  }

  #timedOut(io: WireIo, session: NodeSession | null): void {
    if (session !== null) return void this.#lost(io, session, BROKEN);
    this.#redial?.drop();
    this.#redial = null;
    this.#last = BROKEN;
  }

  #lingerOn(io: WireIo): void {
    this.#lingerAtMs = performance.now() + LINGER_MS;
    this.#schedule(io);
  }

  #schedule(io: WireIo): void {
    this.#turn.ask(io, Math.min(this.#openAtMs, this.#timeoutAtMs, this.#lingerAtMs, this.#graceAtMs));
  }

  /** For both sides: FIN is said where it was not. */
  #leave(io: WireIo, session: NodeSession): void {
    this.#session = null;
    this.#openAtMs = this.#timeoutAtMs = this.#lingerAtMs = Infinity;
    session.leave(io, this.#isOpened);
    this.#place.release(session);
    this.#schedule(io);
  }

  /** All of it, and where the stream is over nothing becomes of it. */
  write(io: WireIo, size: number): number {
    if (this.#unconfirmed !== null) {
      this.#unconfirmed.push(io.calls.buffer.slice(0, size));
      this.#unconfirmedBytes += size;
    }
    const session = this.#session;
    if (session === null) return size;
    const target = this.#isOpened ? null : this.#target;
    this.#isOpened = true;
    this.#openAtMs = Infinity;
    const written = session.writeData(io, size, target);
    if (written < 0 && this.#unconfirmed !== null) this.#lost(io, session, written);
    return written < 0 && this.#unconfirmed === null ? written : size;
  }

  endWriting(io: WireIo): number {
    const session = this.#session;
    this.#isEnding = true;
    if (session === null) return 0;
    if (!this.#isOpened) this.#open(io, session);
    this.#lingerOn(io);
    return 0;
  }

  onUnwanted(): void {
    if (this.#lingerAtMs === Infinity) return;
    this.#lingerAtMs = 0;
    this.#turn.askNow();
  }

  drop(io: WireIo): void {
    this.#redial?.drop();
    this.#redial = null;
    this.#confirm();
    if (this.#session !== null) this.#leave(io, this.#session);
  }
}
