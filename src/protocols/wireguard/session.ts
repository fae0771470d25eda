/** The keys of one handshake in use: packets as data messages, and back (whitepaper, 5.4.6). */
import { PacketWindow } from "#protocols/crypto/packet-window.ts";
import { keepAead, type KeptAead } from "#platform/aead.ts";
import type { SessionKeys } from "./handshake.ts";
import { COUNTER_AT, DATA, PACKET_AT } from "./messages.ts";
import { TAG_BYTES } from "./sizes.ts";

export const REJECT_AFTER_MS = 180_000;
/** What a data message is longer than its packet. */
export const OVERHEAD_BYTES = PACKET_AT + TAG_BYTES;
const CIPHER = "chacha20-poly1305";
/** Where the counter is in the nonce, whose first four bytes are zero. */
const NONCE_COUNTER_AT = 4;
/** Far below what the protocol allows (2^64); a session ends by its age long before. */
const MOST_MESSAGES = 2 ** 48;

export class Session implements Disposable {
  readonly localIndex: number;
  readonly isInitiator: boolean;
  readonly bornMs: number;
  readonly #remoteIndex: number;
  readonly #sending: KeptAead;
  readonly #receiving: KeptAead;
  readonly #seen = new PacketWindow();
  readonly #nonce = Buffer.alloc(12);
  #sent = 0;

  /** Null where this runtime has no cipher that it can keep. */
  static open(keys: SessionKeys, nowMs: number): Session | null {
    const sending = keepAead(CIPHER, keys.sending);
    const receiving = sending && keepAead(CIPHER, keys.receiving);
    return sending && receiving && new Session(keys, { sending, receiving }, nowMs);
  }

  private constructor(
    { localIndex, remoteIndex, isInitiator }: SessionKeys,
    { sending, receiving }: { readonly sending: KeptAead; readonly receiving: KeptAead },
    nowMs: number,
  ) {
    this.localIndex = localIndex;
    this.#remoteIndex = remoteIndex;
    this.isInitiator = isInitiator;
    this.#sending = sending;
    this.#receiving = receiving;
    this.bornMs = nowMs;
  }

  mayBeUsed(nowMs: number): boolean {
    return nowMs - this.bornMs < REJECT_AFTER_MS && this.#sent < MOST_MESSAGES;
  }

  /** Writes the data message for a packet, which may be empty, into `out` at `at`; answers with the offset behind it. */
  seal(packet: Uint8Array, out: Buffer, at: number): number {
    const counter = this.#sent++;
    out.writeUInt32LE(DATA, at);
    out.writeUInt32LE(this.#remoteIndex, at + 4);
    writeCounter(out, at + COUNTER_AT, counter);
    writeCounter(this.#nonce, NONCE_COUNTER_AT, counter);
    return this.#sending.sealInto(out, at + PACKET_AT, this.#nonce, packet);
  }

  /** Writes the packet of a data message into `out` at `at`; answers with its length, or -1 where it is forged or repeated. */
  open(message: Buffer, out: Uint8Array, at: number): number {
    this.#nonce.set(message.subarray(COUNTER_AT, PACKET_AT), NONCE_COUNTER_AT);
    const end = this.#receiving.openInto(out, at, this.#nonce, message.subarray(PACKET_AT));
    if (end < 0 || !this.#seen.accept(message.readBigUInt64LE(COUNTER_AT))) return -1;
    return end - at;
  }

  [Symbol.dispose](): void {
    this.#sending[Symbol.dispose]();
    this.#receiving[Symbol.dispose]();
  }
}

function writeCounter(bytes: Buffer, at: number, counter: number): void {
  bytes.writeUInt32LE(counter >>> 0, at);
  bytes.writeUInt32LE(Math.floor(counter / 2 ** 32), at + 4);
}
