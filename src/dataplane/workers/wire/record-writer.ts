import { byteAt } from "#lib/at.ts";
import { EAGAIN } from "#platform/linux/relay-calls.ts";
import { encodeMessage, MESSAGE } from "#transport/tls13/handshake-messages.ts";
import { HEADER_BYTES, RECORD, SEALED_EXTRA_BYTES } from "#transport/tls13/records.ts";
import type { CipherMemory } from "./cipher-memory.ts";
import type { RecordCipher } from "./record-cipher.ts";
import type { WireIo } from "./wire.ts";

/** Where a sealed record of a few bytes begins in the scratch memory; its content and type are in front. */
const SHORT_AT = 16;
/** The peer need not answer by a KeyUpdate of its own. */
const KEY_UPDATE = encodeMessage(MESSAGE.keyUpdate, Buffer.of(0));

/** Records to the peer. What the socket has not taken of them is kept: they cannot be sealed again. */
export class RecordWriter {
  readonly #memory: CipherMemory;
  readonly #fd: number;
  readonly #cipher: RecordCipher;
  /** Content of one record at most. */
  readonly #mostContent: number;
  #pending: Uint8Array | null = null;
  /** Before the next payload goes out: the peer asks for it (RFC 8446 §4.6.3). */
  mustUpdateKey = false;

  constructor(memory: CipherMemory, fd: number, cipher: RecordCipher, mostContent: number) {
    this.#memory = memory;
    this.#fd = fd;
    this.#cipher = cipher;
    this.#mostContent = mostContent;
  }

  get pending(): boolean {
    return this.#pending !== null;
  }

  /** Takes all of the first `size` bytes of the thread's buffer, or answers with an errno. Only while nothing is pending. */
  write(io: WireIo, size: number): number {
    const told = this.mustUpdateKey || this.#cipher.isWorn ? this.#updateKey(io) : 0;
    if (told < 0) return told;
    const { wire, wireAt } = this.#memory;
    const end = this.#seal(size);
    const sent = this.#send(io, wire, wireAt, end);
    return sent < 0 ? sent : size;
  }

  /** A record of at most ten bytes, such as an alert. 0, or an errno. */
  writeShort(io: WireIo, type: number, content: Uint8Array): number {
    const { evp, scratch, scratchAt } = this.#memory;
    scratch.set(content);
    scratch[content.length] = type;
    const size = content.length + 1;
    const at = scratchAt + BigInt(SHORT_AT);
    writeHeader(scratch, SHORT_AT, content.length);
    this.#cipher.begin(at);
    evp.sealAt(this.#cipher.context, at + BigInt(HEADER_BYTES), scratchAt, size);
    const end = HEADER_BYTES + content.length + SEALED_EXTRA_BYTES;
    return this.#send(io, scratch.subarray(SHORT_AT), at, end);
  }

  /** Later records have another key, and the peer is told. 0, or an errno. */
  #updateKey(io: WireIo): number {
    const told = this.writeShort(io, RECORD.handshake, KEY_UPDATE);
    this.#cipher.update();
    this.mustUpdateKey = false;
    return told;
  }

  /** Only while something is pending. */
  flush(io: WireIo): number {
    if (this.#pending === null) return 0;
    const { wire, wireAt } = this.#memory;
    const pending = this.#pending;
    const size = Math.min(pending.length, wire.length); // a short record may have joined one whole write
    wire.set(pending.subarray(0, size));
    const sent = io.calls.sendAt(this.#fd, wireAt, size);
    if (sent <= 0) return sent;
    this.drop(io);
    this.#keep(io, pending.subarray(sent));
    return sent;
  }

  /** What lies at the start of `sealed`; `at` is its address. */
  #send(io: WireIo, sealed: Uint8Array, at: bigint, size: number): number {
    const sent = this.#pending === null ? io.calls.sendAt(this.#fd, at, size) : EAGAIN;
    if (sent < 0 && sent !== EAGAIN) return sent;
    this.#keep(io, sealed.subarray(Math.max(0, sent), size));
    return 0;
  }

  #keep(io: WireIo, bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#pending = this.#pending === null ? bytes.slice() : Buffer.concat([this.#pending, bytes]);
    io.bufferedBytes += bytes.length;
  }

  /** The first `size` bytes of the thread's buffer to the start of the wire's memory; answers with where they end. */
  #seal(size: number): number {
    if (size >= this.#memory.plain.length) throw new RangeError("no room for the type of the last record");
    let end = 0;
    for (let from = 0; from < size; from += this.#mostContent)
      end = this.#sealRecord(from, Math.min(this.#mostContent, size - from), end);
    return end;
  }

  /** The type is sealed with the content: it stands behind that meanwhile, in place of what follows. */
  #sealRecord(from: number, bytes: number, at: number): number {
    const { evp, plain, plainAddresses, wire, wireAddresses } = this.#memory;
    writeHeader(wire, at, bytes);
    this.#cipher.begin(wireAddresses.of(at));
    const behind = byteAt(plain, from + bytes);
    plain[from + bytes] = RECORD.applicationData;
    const to = wireAddresses.of(at + HEADER_BYTES);
    evp.sealAt(this.#cipher.context, to, plainAddresses.of(from), bytes + 1);
    plain[from + bytes] = behind;
    return at + HEADER_BYTES + bytes + SEALED_EXTRA_BYTES;
  }

  /** What waits for the socket, with what the peer is still to be told. Nothing may be written any more. */
  release(io: WireIo): Uint8Array | null {
    if (this.mustUpdateKey) this.#updateKey(io);
    const pending = this.#pending;
    this.drop(io);
    return pending;
  }

  drop(io: WireIo): void {
    io.bufferedBytes -= this.#pending?.length ?? 0;
    this.#pending = null;
  }
}

function writeHeader(out: Uint8Array, at: number, contentBytes: number): void {
  const size = contentBytes + SEALED_EXTRA_BYTES;
  out[at] = RECORD.applicationData;
  out[at + 1] = out[at + 2] = 3;
  out[at + 3] = size >>> 8;
  out[at + 4] = size;
}
