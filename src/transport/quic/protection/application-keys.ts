/** The keys of 1-RTT packets and their updates (RFC 9001 §6). */
import type { PacketCipher, QuicCiphers } from "#platform/quic.ts";
import { AEAD_LIMIT_REACHED, QuicFault } from "#transport/quic/fault.ts";
import { CHACHA20_POLY1305_SHA256, deriveKeys, nextSecret } from "./key-schedule.ts";

/** Far below what AES-GCM allows (RFC 9001 §6.6). */
const UPDATE_AFTER_PACKETS = 2 ** 22;
const MOST_FORGED_CHACHA = 2 ** 36;
const MOST_FORGED = 2 ** 52;
/** Old keys live so many probe timeouts longer, for packets that come late. */
const OLD_KEYS_PROBES = 3;
/** Peers that update their keys do so after more packets than this; most connections have fewer. */
const NEXT_AFTER_PACKETS = 32;

interface Direction {
  suite: number;
  secret: Uint8Array;
  current: PacketCipher;
  /** Null: not made yet. */
  next: PacketCipher | null;
}

export class ApplicationKeys {
  readonly #ciphers: QuicCiphers;
  #reads: Direction | null = null;
  #writes: Direction | null = null;
  #old: PacketCipher | null = null;
  #oldUntilMs = 0;
  phase = 0;
  /** Packets since the last update. */
  #sealed = 0;
  #opened = 0;
  #forged = 0;
  /** The lowest packet number that the present read keys have opened. */
  #firstNumber = Infinity;
  #mayUpdate = false;
  updates = 0;

  constructor(ciphers: QuicCiphers) {
    this.#ciphers = ciphers;
  }

  set(forWriting: boolean, suite: number, secret: Uint8Array): void {
    const current = this.#ciphers.make(suite, deriveKeys(suite, secret), forWriting);
    const direction: Direction = { suite, secret: new Uint8Array(secret), current, next: null };
    if (forWriting) this.#writes = direction;
    else this.#reads = direction;
  }

  /**
   * Makes the keys of the next phase, where there are none: never because of the phase that a packet shows, or the time to
   * open it would tell (RFC 9001 §9.5).
   */
  #makeNext(): void {
    for (const direction of [this.#reads, this.#writes]) {
      if (direction === null || direction.next !== null) continue;
      const { suite, secret, current } = direction;
      direction.secret = nextSecret(suite, secret);
      secret.fill(0);
      const keys = deriveKeys(suite, direction.secret);
      direction.next = this.#ciphers.makeNext(current, keys, direction === this.#writes);
    }
  }

  /** The keys of the next phase are made. */
  get hasNext(): boolean {
    return (this.#reads?.next ?? null) !== null;
  }

  get seals(): PacketCipher | null {
    return this.#writes?.current ?? null;
  }

  /** For the header, whatever the phase. */
  get opens(): PacketCipher | null {
    return this.#reads?.current ?? null;
  }

  /**
   * The keys for a packet of this phase and number. Before the next ones are made it is tried with the present ones: that it
   * could not be opened makes the others, whichever phase it is of, and it is to be tried again.
   */
  opensOf(phase: number, number: number, nowMs: number): PacketCipher | null {
    if (this.#reads === null || phase === this.phase) return this.#reads?.current ?? null;
    if (number < this.#firstNumber && this.#old !== null) return nowMs <= this.#oldUntilMs ? this.#old : null;
    return this.#reads.next ?? this.#reads.current;
  }

  /** A packet of this phase was opened. `probeMs`: of a probe timeout. */
  onOpened(phase: number, number: number, nowMs: number, probeMs: number): void {
    if (phase === this.phase) {
      this.#firstNumber = Math.min(this.#firstNumber, number);
      if (++this.#opened === NEXT_AFTER_PACKETS) this.#makeNext();
      return;
    }
    if (number < this.#firstNumber && this.#old !== null) return;
    this.#turn(nowMs, probeMs, number);
  }

  /** A packet could not be opened. Throws `QuicFault` for the last one that is borne. */
  onForged(): void {
    this.#makeNext();
    const most = this.#reads?.suite === CHACHA20_POLY1305_SHA256 ? MOST_FORGED_CHACHA : MOST_FORGED;
    if (++this.#forged >= most)
      throw new QuicFault(AEAD_LIMIT_REACHED, "too many packets that are not authentic");
  }

  /** The peer has acknowledged a packet of this phase, or the handshake is confirmed: we may update. */
  allowUpdate(): void {
    this.#mayUpdate = true;
  }

  onSealed(nowMs: number, probeMs: number): void {
    if (++this.#sealed >= UPDATE_AFTER_PACKETS && this.#mayUpdate) this.update(nowMs, probeMs);
  }

  /** Our own update; nothing where the last one is not over. */
  update(nowMs: number, probeMs: number): void {
    if (!this.#mayUpdate || nowMs <= this.#oldUntilMs) return;
    this.#turn(nowMs, probeMs, Infinity);
  }

  #turn(nowMs: number, probeMs: number, firstNumber: number): void {
    this.#makeNext();
    const [reads, writes] = [this.#reads, this.#writes];
    if (reads === null || writes === null || reads.next === null || writes.next === null) return;
    this.phase ^= 1;
    this.updates++;
    this.#sealed = 0;
    this.#firstNumber = firstNumber;
    this.#old?.[Symbol.dispose]();
    this.#old = reads.current;
    this.#oldUntilMs = nowMs + OLD_KEYS_PROBES * probeMs;
    reads.current = reads.next;
    writes.current[Symbol.dispose]();
    writes.current = writes.next;
    reads.next = writes.next = null;
    this.#makeNext();
  }

  [Symbol.dispose](): void {
    for (const direction of [this.#reads, this.#writes]) {
      direction?.current[Symbol.dispose]();
      direction?.next?.[Symbol.dispose]();
    }
    this.#old?.[Symbol.dispose]();
    this.#reads = this.#writes = this.#old = null;
  }
}
