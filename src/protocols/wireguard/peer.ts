/** One peer: which keys are in use, when new ones are agreed on, and what is said when (whitepaper, 6). */
import { DialError } from "#core/errors.ts";
import { Initiation, type Partner, type ReceivedInitiation, type SessionKeys } from "./handshake.ts";
import { OutgoingMacs } from "./macs.ts";
import type { KeyPair } from "./primitives.ts";
import { Deadlines } from "./deadlines.ts";
import { OVERHEAD_BYTES, REJECT_AFTER_MS, Session } from "./session.ts";
import { Sessions } from "./sessions.ts";
import { StagedPackets } from "./staged-packets.ts";
import { WaitingDials } from "./waiting-dials.ts";

const REKEY_AFTER_MS = 120_000;
const REKEY_ATTEMPT_MS = 90_000;
const REKEY_TIMEOUT_MS = 5_000;
const MOST_JITTER_MS = 333;
const KEEPALIVE_MS = 10_000;
/** No key outlives this. */
const FORGET_MS = 3 * REJECT_AFTER_MS;
const NOTHING = new Uint8Array(0);

/** What a peer needs of the tunnel that it belongs to. */
export interface PeerPort {
  readonly own: KeyPair;
  /** Of the process, not of the day. */
  nowMs(): number;
  /** For an initiation. */
  timestamp(): Buffer;
  /** The message is lent until it returns. */
  send(peer: Peer, message: Buffer): void;
  /** A number by which the other side names this peer, until it is given up. */
  takeIndex(peer: Peer): number;
  giveUpIndex(index: number): void;
  /** Its handshakes stay without an answer: its address may be another by now. */
  onSilent(peer: Peer): void;
}

export class Peer implements Disposable {
  readonly partner: Partner;
  readonly #port: PeerPort;
  readonly #persistentMs: number;
  readonly #macs: OutgoingMacs;
  readonly #deadlines: Deadlines<"retry" | "keepalive" | "answer" | "persistent" | "forget">;
  readonly #staged = new StagedPackets();
  readonly #dials: WaitingDials;
  readonly #sessions: Sessions;
  readonly #out: Buffer;
  #initiation: Initiation | null = null;
  #initiatedMs = -Infinity;
  #giveUpMs = Infinity;
  #lastTimestamp: Buffer | null = null;
  #isOver = false;

  /** `label` is for messages. `persistentMs` 0: nothing is said without need. `out` is for one message at a time, as long as a packet may get. */
  constructor(partner: Partner, label: string, persistentMs: number, out: Buffer, port: PeerPort) {
    this.partner = partner;
    this.#dials = new WaitingDials(label);
    this.#sessions = new Sessions(({ localIndex }) => port.giveUpIndex(localIndex));
    this.#persistentMs = persistentMs;
    this.#out = out;
    this.#port = port;
    this.#macs = new OutgoingMacs(partner.publicKey);
    this.#deadlines = new Deadlines(() => port.nowMs(), {
      retry: () => this.#retry(),
      keepalive: () => this.#sayNothing(),
      answer: () => this.#initiate(),
      persistent: () => this.#sayNothing(),
      forget: () => this.#sessions.forget(),
    });
  }

  get isReady(): boolean {
    return this.#sessions.current?.mayBeUsed(this.#port.nowMs()) === true;
  }

  /** Resolves when packets can go. Rejects with `DialError` where that takes too long, or the signal ends it. */
  async ready(signal: AbortSignal): Promise<void> {
    if (this.isReady) return;
    if (this.#isOver) throw new DialError("aborted", "the tunnel is over", { atNode: true });
    const keys = this.#dials.add(signal);
    if (!signal.aborted) this.#initiate();
    await keys;
  }

  /** A packet with zeros up to a multiple of 16 behind it; it is lent until it returns, and waits as a copy where there are no keys. */
  send(packet: Uint8Array): void {
    const nowMs = this.#port.nowMs();
    const session = this.#sessions.current;
    if (session === null || !session.mayBeUsed(nowMs)) {
      this.#staged.push(packet);
      return this.#initiate();
    }
    this.#sendBy(session, packet, nowMs);
    if (session.isInitiator && nowMs - session.bornMs >= REKEY_AFTER_MS) this.#initiate();
  }

  #sendBy(session: Session, packet: Uint8Array, nowMs: number): void {
    const end = session.seal(packet, this.#out, 0);
    this.#port.send(this, this.#out.subarray(0, end));
    this.#deadlines.clear("keepalive");
    if (packet.length > 0) this.#deadlines.setOnce("answer", nowMs + KEEPALIVE_MS + REKEY_TIMEOUT_MS);
    if (this.#persistentMs > 0) this.#deadlines.set("persistent", nowMs + this.#persistentMs);
  }

  /**
   * A data message for one of its indexes: its packet is written into `out` at `at`. Answers with its length, 0 where it
   * only says that the peer is there, or -1 where it is to be dropped.
   */
  receive(index: number, message: Buffer, out: Uint8Array, at: number): number {
    const nowMs = this.#port.nowMs();
    const session = this.#sessions.find(index);
    if (session === null || !session.mayBeUsed(nowMs)) return -1;
    const length = session.open(message, out, at);
    if (length < 0) return -1;
    if (this.#sessions.isNext(session)) this.#use(session);
    this.#deadlines.clear("answer");
    if (length > 0) this.#deadlines.setOnce("keepalive", nowMs + KEEPALIVE_MS);
    const isOld = nowMs - session.bornMs >= REJECT_AFTER_MS - KEEPALIVE_MS - REKEY_TIMEOUT_MS;
    if (isOld && session.isInitiator && session === this.#sessions.current) this.#initiate();
    return length;
  }

  takeResponse(index: number, message: Buffer): void {
    const initiation = this.#initiation;
    if (initiation === null || initiation.localIndex !== index) return;
    const keys = initiation.finish(message);
    const session = keys && this.#open(keys);
    if (session === null) return;
    this.#initiation = null;
    this.#deadlines.clear("retry");
    this.#giveUpMs = Infinity;
    this.#use(session);
  }

  /** There is no way to it at present: who waits is told why, and the next dial tries at once. */
  fail(error: DialError): void {
    this.#initiatedMs = -Infinity;
    this.#dials.fail(error);
  }

  takeCookie(message: Buffer): void {
    this.#macs.takeCookie(message, this.#port.nowMs());
  }

  takeInitiation(received: ReceivedInitiation): void {
    const nowMs = this.#port.nowMs();
    const timestamp = received.timestampOf(this.partner);
    if (timestamp === null || (this.#lastTimestamp !== null && timestamp.compare(this.#lastTimestamp) <= 0))
      return;
    this.#lastTimestamp = timestamp;
    const index = this.#port.takeIndex(this);
    const answer = received.answer(this.partner, index);
    const session = answer && this.#open(answer.keys);
    if (answer === null || session === null) return this.#port.giveUpIndex(index);
    this.#sessions.offer(session);
    this.#macs.sign(answer.message, nowMs);
    this.#port.send(this, answer.message);
  }

  #open(keys: SessionKeys): Session | null {
    const nowMs = this.#port.nowMs();
    const session = Session.open(keys, nowMs);
    if (session !== null) this.#deadlines.set("forget", nowMs + FORGET_MS);
    return session;
  }

  /** Both sides have these keys: what waited goes by them. */
  #use(session: Session): void {
    this.#sessions.use(session);
    const nowMs = this.#port.nowMs();
    const staged = this.#staged.take();
    for (const packet of staged) this.#sendBy(session, packet, nowMs);
    if (staged.length === 0 && session.isInitiator) this.#sayNothing(); // the other side uses the keys when it has seen one message
    this.#dials.goOn();
  }

  #sayNothing(): void {
    const nowMs = this.#port.nowMs();
    const session = this.#sessions.current;
    if (session?.mayBeUsed(nowMs) === true) this.#sendBy(session, NOTHING, nowMs);
    else if (this.#persistentMs > 0) this.#initiate();
  }

  /** Where none was begun within the last seconds. */
  #initiate(): void {
    const nowMs = this.#port.nowMs();
    if (this.#isOver || nowMs - this.#initiatedMs < REKEY_TIMEOUT_MS) return;
    if (this.#giveUpMs === Infinity) this.#giveUpMs = nowMs + REKEY_ATTEMPT_MS;
    if (this.#initiation !== null) this.#port.giveUpIndex(this.#initiation.localIndex);
    const index = this.#port.takeIndex(this);
    this.#initiation = Initiation.begin(this.#port.own, this.partner, index, this.#port.timestamp());
    if (this.#initiation === null) return this.#port.giveUpIndex(index);
    this.#initiatedMs = nowMs;
    this.#macs.sign(this.#initiation.message, nowMs);
    if (this.#persistentMs > 0) this.#deadlines.set("persistent", nowMs + this.#persistentMs);
    this.#deadlines.set("retry", nowMs + REKEY_TIMEOUT_MS + Math.random() * MOST_JITTER_MS);
    this.#port.send(this, this.#initiation.message);
  }

  #retry(): void {
    this.#port.onSilent(this);
    if (this.#port.nowMs() < this.#giveUpMs) return this.#initiate();
    this.#giveUp();
  }

  #giveUp(): void {
    if (this.#initiation !== null) this.#port.giveUpIndex(this.#initiation.localIndex);
    this.#initiation = null;
    this.#giveUpMs = Infinity;
    this.#staged.clear();
    this.#dials.fail();
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    this.#dials.fail(new DialError("aborted", "the tunnel is over", { atNode: true }));
    this.#giveUp();
    this.#deadlines[Symbol.dispose]();
    this.#sessions.forget();
  }
}

/** As long as a message for a packet of so many bytes can get, with its zeros. */
export function messageBytes(mtuBytes: number): number {
  return mtuBytes + 16 + OVERHEAD_BYTES;
}
