import type { PlainHandshake } from "#core/held.ts";
import type { Member } from "#net/crowd.ts";
import { SOCKADDR_BYTES, SOCKADDR_IN_BYTES, v4At } from "#platform/linux/sockaddr.ts";
import { EAGAIN, EINTR, FAULT, HANGUP, PEER_ENDED, READABLE } from "#platform/linux/relay-calls.ts";
import {
  beginsWithGreeting,
  greetingBytes,
  readPlain,
  type PlainRequest,
} from "#protocols/mixed/plain-handshake.ts";
import { CLIENT, FAILED, WAITS } from "./conversation.ts";
import type { Io, Outcome, Side } from "./conversation.ts";
import type { Front } from "./front.ts";
import type { Newcomer } from "./newcomer.ts";
import { REQUEST_BYTES, tag, type Dial } from "./front-table.ts";
import type { Line } from "./line.ts";
import { DIALLED, HANDED, NOT_DIALLED, REQUESTED, STALE } from "./shared-table.ts";
import type { StandingAnswer } from "./standing.ts";
import type { KeptKey } from "./standing-key.ts";

const READS = 0;
/** Everything is there; the main thread has been asked, or there is no place for the question yet. */
const ASKS = 1;
const DIALS = 2;
const GONE = 3;

/** RFC 1928 §3: VER METHOD, no authentication required. */
const NO_AUTHENTICATION = Uint8Array.of(5, 0);
const NOTHING: PlainRequest = { from: 0, size: 0 };
const EINPROGRESS = -115;
/** In the place of an errno: it took too long for us. */
export const LATE = 0;

/**
 * A client from accept to the first byte of the tunnel. Its handshake is looked at and stays in the socket until the
 * dial has worked out, so whoever takes the client before that finds it as it came. From the question to the answer the
 * descriptor stays open whatever the client does: the main thread may duplicate it.
 */
export class Arriving implements Newcomer {
  queued = false;
  readonly halfClosed = false;
  line: Line<Newcomer> | null = null;
  before: Newcomer | null = null;
  behind: Newcomer | null = null;
  deadlineMs = 0;
  member: Member | null = null;
  readonly slot: number;
  readonly listener: number;
  readonly fd: number;
  /** By SOCKS5. */
  greeted = false;
  readonly #front: Front;
  readonly #handshake: PlainHandshake;
  #stage = READS;
  #request = NOTHING;
  #place = -1;
  /** What the kernel has said of the client since its request was seen. */
  #news = 0;
  #remote = -1;
  #remoteNews = 0;
  /** As the main thread has said, or has said of somebody like this one. */
  #dial: Dial | null = null;
  /** What it asks for, as others may; null: it goes by what somebody else has asked for. */
  #key: KeptKey | null = null;

  constructor(
    front: Front,
    slot: number,
    listener: number,
    { fd, handshake }: { fd: number; handshake: PlainHandshake },
  ) {
    this.#front = front;
    this.slot = slot;
    this.fd = fd;
    this.listener = listener;
    this.#handshake = handshake;
  }

  begin(): boolean {
    const isSilent = this.#handshake === "none" || this.#handshake === "redirected";
    if (isSilent) this.#ask();
    return isSilent;
  }

  notice(side: Side, events: number): boolean {
    if (side === CLIENT) this.#news |= events;
    else this.#remoteNews |= events;
    return true;
  }

  limit(): void {} // what it becomes looks at the table

  grant(): void {} // it has asked for nothing

  run(io: Io): Outcome {
    if (this.#stage === READS) this.#read();
    else if (this.#stage === DIALS) return this.#goOn(io);
    return WAITS;
  }

  drop(): void {
    this.#stage = GONE;
    this.#dropDial();
    this.#leavePlace();
    this.#front.gone(this);
  }

  #leavePlace(): void {
    if (this.#place < 0) return;
    const place = this.#place;
    this.#place = -1;
    this.#front.givePlace(place);
  }

  #read(): void {
    const { calls } = this.#front;
    const size = calls.look(this.fd);
    if (size === EAGAIN || size === EINTR) return;
    if (size <= 0) return this.end(size < 0);
    if (this.#isKnown(size)) return;
    const step = readPlain(this.#handshake, calls.bytes.subarray(0, size));
    if (step === "other") return this.handOver();
    if (step !== "wait") {
      if (step.greets && !this.greeted) {
        if (calls.say(this.fd, NO_AUTHENTICATION) < 0) return this.end(true);
        this.greeted = true;
      }
      if (step.request !== null) return this.#found(step.request, size);
    }
    const ended = (this.#news & (PEER_ENDED | HANGUP | FAULT)) !== 0;
    if (ended || size === calls.bytes.length) this.handOver();
  }

  /** True: it says what somebody else has said, byte by byte, and goes the same way. */
  #isKnown(size: number): boolean {
    const { calls, standing } = this.#front;
    if (standing.isEmpty || (!this.greeted && beginsWithGreeting(calls.bytes))) return false;
    const from = this.greeted ? greetingBytes(calls.bytes) : 0;
    if (size <= from || size - from > REQUEST_BYTES) return false;
    const answer = standing.find(this.#front.keyOf(this, from, size));
    if (answer === null) return false;
    this.#saw({ from, size }, size);
    this.#goBy(answer);
    return true;
  }

  #saw(request: PlainRequest, seen: number): void {
    this.#request = request;
    // What is there behind the handshake is no news to come.
    this.#news = (this.#news & ~READABLE) | (seen > request.size ? READABLE : 0);
  }

  #found(request: PlainRequest, seen: number): void {
    this.#saw(request, seen);
    if (request.size - request.from > REQUEST_BYTES) this.handOver();
    else this.#ask();
  }

  /** Its bytes are those that were peeked at last. Without a place it is asked again when there is one. */
  #ask(): void {
    const { calls, host, shared } = this.#front;
    this.#stage = ASKS;
    const { from, size } = this.#request;
    const end = this.#handshake === "redirected" ? calls.originalName(this.fd, this.#family) : size;
    if (end < 0) return this.handOver(); // it came by itself
    if (this.#stands(from, end)) return;
    this.#place = this.#front.takePlace(this);
    if (this.#place < 0) return;
    const local = this.#front.localOf(this.listener, this.fd);
    shared.writeRequest(this.#place, local, calls.bytes.subarray(from, end));
    shared.sizes[this.#place] = size;
    shared.tags[this.slot] = tag(this.listener, this.greeted, this.#place);
    this.#front.asked(this);
    host.report(this.slot, REQUESTED);
  }

  get #family(): 4 | 6 {
    return v4At(this.#front.shared.sources, this.slot * SOCKADDR_BYTES) > 0 ? 4 : 6;
  }

  /** True: others have asked for the same, and what they were told is good for this one. */
  #stands(from: number, end: number): boolean {
    const key = this.#front.keyOf(this, from, end);
    const answer = this.#front.standing.find(key);
    if (answer === null) {
      this.#key = key.kept();
      return false;
    }
    this.#goBy(answer);
    return true;
  }

  #goBy(answer: StandingAnswer): void {
    this.#front.standing.use(this.slot, answer);
    this.#front.asked(this);
    this.#dialBy(answer.dial);
  }

  askAgain(): void {
    if (this.#stage !== ASKS) return;
    const { size } = this.#request;
    if (size > 0 && this.#front.calls.look(this.fd) < size) this.end(true);
    else this.#ask();
  }

  handOver(): void {
    const { host, shared } = this.#front;
    this.#stage = ASKS;
    shared.tags[this.slot] = tag(this.listener, this.greeted, 0);
    this.#front.asked(this);
    host.report(this.slot, HANDED);
  }

  end(isFault: boolean): void {
    const { calls, table } = this.#front;
    table.descriptors[this.slot * 2] = -1;
    calls.discard(this.fd, isFault);
    this.#leave();
  }

  /** The main thread has a descriptor of its own. */
  taken(): void {
    const { calls, host, table } = this.#front;
    calls.unwatch(host.epoll, this.fd);
    table.descriptors[this.slot * 2] = -1;
    calls.close(this.fd);
    this.#leave();
  }

  #leave(): void {
    this.#front.host.put(this.slot, null);
    this.drop();
    this.#front.freeSlot(this.slot);
  }

  /** As its place says. */
  dial(): void {
    const { address, device, words, ...rest } = this.#front.shared.dial(this.#place);
    const [to, by, told] = [address, device, words].map((bytes) => new Uint8Array(bytes));
    this.#leavePlace();
    this.#dialBy({ ...rest, address: to, device: by, words: told } as Dial);
  }

  #dialBy(dial: Dial): void {
    const { host } = this.#front;
    this.#dial = dial;
    const error = this.#open(dial);
    const { timeoutMs } = dial;
    if (error < 0 && error !== EINPROGRESS) return this.refused(error);
    this.#stage = DIALS;
    this.#front.dials(this, timeoutMs);
    if (!host.watch(this.slot, this.#remote, 1)) host.end(this.slot, true);
  }

  #open({ address, mark, idleSeconds, intervalSeconds, device }: Dial): number {
    const { calls, table } = this.#front;
    const family = address.length === SOCKADDR_IN_BYTES ? 4 : 6;
    const fd = calls.open(family);
    if (fd < 0) return fd;
    this.#remote = fd;
    // Before anything leaves by it: what comes back to this machine is told by the name of this socket.
    Atomics.store(table.descriptors, this.slot * 2 + 1, fd);
    // Most who come by a standing answer are gone before a probe would be due: `joined` sees to the others.
    const isProbed = idleSeconds > 0 && !this.#front.standing.has(this.slot);
    if (isProbed) calls.keepAlive(fd, idleSeconds, intervalSeconds);
    const marked = mark === 0 ? 0 : calls.mark(fd, mark);
    const bound = device.length === 0 ? 0 : calls.bindToDevice(fd, family, device);
    if (marked < 0 || bound < 0) return Math.min(marked, bound);
    calls.address.set(address);
    return calls.connect(fd, address.length);
  }

  timedOut(): void {
    if (this.#stage === DIALS) this.refused(LATE);
    else this.end(false);
  }

  /** Of one that dials by what somebody else was told: it could not ask any more. */
  handBack(): void {
    this.#giveUpAnswer();
    this.handOver();
  }

  #giveUpAnswer(): void {
    this.#hangUp();
    this.#front.standing.giveUp(this.slot);
    this.#dial = null;
  }

  #hangUp(): void {
    const { calls, table } = this.#front;
    Atomics.store(table.descriptors, this.slot * 2 + 1, -1); // first: nobody asks for the name of another's number
    this.#front.host.atSeam?.("closing");
    if (this.#remote >= 0) calls.close(this.#remote);
    this.#remote = -1;
    this.#remoteNews = 0;
    this.#stage = ASKS;
    this.#front.dialled(this);
  }

  refused(errno: number): void {
    const { host, standing, table } = this.#front;
    if (standing.has(this.slot)) {
      this.#giveUpAnswer();
      return this.askAgain();
    }
    this.#hangUp();
    this.#dropDial();
    table.asked[this.slot * 2] = errno;
    host.report(this.slot, NOT_DIALLED);
  }

  #goOn(io: Io): Outcome {
    if ((this.#news & (HANGUP | FAULT)) !== 0) return FAILED; // the client has gone
    if (this.#remoteNews === 0) return WAITS;
    const { calls } = this.#front;
    const error = (this.#remoteNews & (FAULT | HANGUP)) === 0 ? 0 : calls.takeError(this.#remote);
    if (error !== 0) {
      this.refused(error);
      return WAITS;
    }
    return this.#begin(io);
  }

  #begin(io: Io): Outcome {
    const { calls, host } = this.#front;
    const { size } = this.#request;
    if (size > 0 && calls.consume(this.fd, size) !== size) return FAILED;
    const dial = this.#dial as Dial;
    if (dial.words.length > 0 && calls.say(this.fd, dial.words) !== dial.words.length) return FAILED;
    const pair = host.pair(this.slot);
    if (pair === null) return FAILED;
    this.#front.dialled(this);
    this.#stage = GONE;
    host.put(this.slot, pair);
    this.#tellBegin(dial);
    if (this.#news !== 0) pair.notice(CLIENT, this.#news);
    pair.notice(1, this.#remoteNews);
    return pair.run(io);
  }

  #tellBegin(dial: Dial): void {
    const { host, standing } = this.#front;
    this.#dial = null;
    if (standing.has(this.slot)) {
      if (standing.begin(this.slot)) host.report(this.slot, STALE);
      return;
    }
    standing.keep(dial, this.#key as KeptKey);
    host.report(this.slot, DIALLED);
  }

  /** What came of it is good for nobody else. */
  #dropDial(): void {
    if (this.#dial !== null && !this.#front.standing.has(this.slot)) this.#front.standing.drop(this.#dial);
    this.#dial = null;
  }
}
