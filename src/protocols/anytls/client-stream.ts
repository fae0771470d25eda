import { DialError } from "#core/errors.ts";
import { COPIES } from "#core/stream.ts";
import type { Session } from "./session.ts";
import { SessionStream } from "./stream.ts";

/** A local end waits so long without data from the peer, because the FIN that says it would cut an answer off. */
const LINGER_MS = 1_000;
/** Without the server's answer by then, the idle session that was used again is dead. */
const ANSWER_TIMEOUT_MS = 3_000;
/** Bytes that are kept until the server has answered, to be sent again through another session; more have to wait. */
const MAX_UNCONFIRMED = 64 * 1024;

type Done = () => void;

/** A client's stream. On a session that had been idle it outlives that session's death, if the server never answered. */
export class ClientStream extends SessionStream {
  /** Frames are made of copies, and so is what is kept. */
  readonly [COPIES] = true;
  /** In SOCKS form. */
  readonly target: Buffer;
  /** What may have to be sent again; null: the server has answered, or is not expected to. */
  #unconfirmed: Buffer[] | null;
  #unconfirmedBytes = 0;
  #held: Done | null = null;
  #linger: NodeJS.Timeout | undefined;
  #answerTimer: NodeJS.Timeout | undefined;

  /** `awaited`: the server will say whether it could dial, and its silence means that the session is dead. */
  constructor(session: Session, id: number, target: Buffer, awaited: boolean) {
    super(session, id);
    this.on("error", () => {}); // its user has a listener of its own, but later than the session may break
    this.target = target;
    this.#unconfirmed = awaited ? [] : null;
    if (!awaited) return;
    this.#answerTimer = setTimeout(() => session.close(silence()), ANSWER_TIMEOUT_MS);
  }

  get mayMove(): boolean {
    return this.#unconfirmed !== null && !this.destroyed;
  }

  protected get mayLeave(): boolean {
    return this.#unconfirmed === null;
  }

  /** SYNACK: no problem is success. */
  answered(problem: string): void {
    if (problem === "") this.#confirm();
    else this.destroy(new DialError("failed", `the server could not dial: ${printable(problem)}`));
  }

  /** Its session died before the server answered; writes are kept until `moveTo`. */
  strand(): void {
    this.session = null;
    clearTimeout(this.#answerTimer);
  }

  /** Continues in another session; the user of the stream notices nothing. */
  moveTo(session: Session, id: number): void {
    const kept = this.#unconfirmed ?? [];
    this.session = session;
    this.id = id;
    for (const data of kept) session.sendData(this, data, () => {});
    this.#confirm();
    if (this.writableFinished) this.#lingerOn();
  }

  override arrive(data: Buffer): boolean {
    if (this.#unconfirmed !== null) this.#confirm();
    if (this.#linger !== undefined) this.#lingerOn();
    return super.arrive(data);
  }

  override _read(): void {
    this.#linger?.refresh(); // a slow reader has held the peer up
    super._read();
  }

  override farEnd(): void {
    clearTimeout(this.#linger);
    this.#confirm();
    super.farEnd();
  }

  override _write(data: Buffer, encoding: string, done: Done): void {
    if (this.#unconfirmed === null) return super._write(data, encoding, done);
    this.#unconfirmed.push(Buffer.from(data));
    this.#unconfirmedBytes += data.length;
    const full = this.#unconfirmedBytes > MAX_UNCONFIRMED;
    if (full) this.#held = done;
    if (this.session !== null) this.session.sendData(this, data, full ? () => {} : done);
    else if (!full) done();
  }

  override _final(done: Done): void {
    if (this.session !== null) this.#lingerOn();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.#linger);
    this.#confirm();
    super._destroy(error, done);
  }

  #confirm(): void {
    clearTimeout(this.#answerTimer);
    this.#unconfirmed = null;
    const held = this.#held;
    this.#held = null;
    held?.();
  }

  #lingerOn(): void {
    clearTimeout(this.#linger);
    this.#linger = setTimeout(() => {
      if (this.readableLength > 0) return this.#lingerOn(); // more may wait behind it
      this.leave();
      this.endReading();
    }, LINGER_MS);
  }
}

function silence(): DialError {
  return new DialError("timeout", "the server does not answer on a session that was idle");
}

/** What a server says may be shown, but not as it likes. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, "?").slice(0, 200);
}
