import { EAGAIN } from "#platform/linux/relay-calls.ts";
import { type AlertName, encodeAlert } from "#transport/tls13/alerts.ts";
import type { CipherSuite } from "#transport/tls13/cipher-suites.ts";
import { DirectionKeys } from "#transport/tls13/direction-keys.ts";
import type { Ticket } from "#transport/tls13/post-handshake.ts";
import { RECORD } from "#transport/tls13/records.ts";
import type { CipherMemory } from "./cipher-memory.ts";
import { Readiness } from "./readiness.ts";
import { RecordCipher } from "./record-cipher.ts";
import { RecordReader } from "./record-reader.ts";
import { RecordWriter } from "./record-writer.ts";
import type { ReleasedWire, ReturningWire } from "./framed.ts";
import { SocketBelow } from "./sealed-below.ts";
import type { LeavableWire } from "./vision-wire.ts";
import type { WireIo } from "./wire.ts";

export interface RecordStart {
  /**
   * 0 and 1: the contexts of opening and sealing. 2 and 3: the records of each so far with the present key. 4: the
   * number of the suite. 5: the most content of one record to the peer.
   */
  word(at: number): number;
  readonly suite: CipherSuite;
  /** The traffic secrets of opening and sealing, and behind them what was read from the socket already, and not opened. */
  readonly state: Uint8Array;
  /** Absent: tickets are checked and dropped. */
  readonly onTicket?: ((ticket: Ticket) => void) | undefined;
  /** It may be left behind, so nothing behind a record is opened. Absent: it stays. */
  readonly isExact?: boolean;
}

const drop = (): void => {};

/** A socket with records of TLS 1.3 (RFC 8446 §5) to and from a server, behind the handshake. */
export class RecordWire extends Readiness implements ReturningWire, LeavableWire {
  readonly fd: number;
  readonly #memory: CipherMemory;
  readonly #contexts: { sealing: bigint; opening: bigint };
  readonly #inward: DirectionKeys;
  readonly #outward: DirectionKeys;
  readonly #reader: RecordReader;
  readonly #writer: RecordWriter;
  /** We said close_notify. */
  #hasSaidEnd = false;

  /** The contexts are its own from here on. */
  constructor(
    memory: CipherMemory,
    fd: number,
    { word, suite, state, onTicket = drop, isExact = false }: RecordStart,
  ) {
    super();
    const { hashBytes } = suite;
    const [opening, sealing] = [BigInt(word(0)), BigInt(word(1))];
    const inward = new DirectionKeys(suite, state.slice(0, hashBytes), word(2));
    const outward = new DirectionKeys(suite, state.slice(hashBytes, 2 * hashBytes), word(3));
    const rest = state.length > 2 * hashBytes ? state.slice(2 * hashBytes) : null;
    this.fd = fd;
    this.#memory = memory;
    this.#inward = inward;
    this.#outward = outward;
    this.#contexts = { opening, sealing };
    this.#writer = new RecordWriter(memory, fd, new RecordCipher(memory, sealing, outward), word(5));
    const answers = {
      onTicket,
      onKeyWanted: () => void (this.#writer.mustUpdateKey = true),
      onFault: (io: WireIo, alert: AlertName) => void this.#sayAlert(io, alert),
    };
    const cipher = new RecordCipher(memory, opening, inward);
    this.#reader = new RecordReader(memory, new SocketBelow(memory, fd), cipher, { answers, rest, isExact });
  }

  get pending(): boolean {
    return this.#writer.pending;
  }

  read(io: WireIo, size: number): number {
    return this.#found(this.#reader.read(io, size));
  }

  available(io: WireIo): number {
    return this.#found(this.#reader.available(io));
  }

  /** A short read says that there is no more, unless it is the last. */
  #found(bytes: number): number {
    if (!this.#reader.isDry) this.readable = true; // an earlier read in the same turn may have found nothing
    else if (!this.hungUp) this.readable = false;
    return bytes;
  }

  write(io: WireIo, size: number): number {
    const taken = this.#writer.write(io, size);
    this.writable = !this.#writer.pending;
    return taken;
  }

  flush(io: WireIo): number {
    const sent = this.#writer.flush(io);
    if (this.#writer.pending) this.writable = false;
    return sent;
  }

  /** First in TLS, then in TCP. */
  endWriting(io: WireIo): number {
    const said = this.#sayAlert(io, "close_notify");
    if (said < 0) return said;
    if (!this.#writer.pending) return io.calls.endWriting(this.fd);
    this.writable = false;
    return EAGAIN;
  }

  /** Whatever it says, no record follows it. */
  #sayAlert(io: WireIo, alert: AlertName): number {
    if (this.#hasSaidEnd) return 0;
    this.#hasSaidEnd = true;
    return this.#writer.writeShort(io, RECORD.alert, encodeAlert(alert));
  }

  override onEvents(events: number): void {
    super.onEvents(events);
    if (this.readable) this.#reader.wake();
  }

  stay(): void {
    this.#reader.isExact = false;
  }

  leaveReading(): Uint8Array {
    return this.#reader.left.sealed;
  }

  leaveWriting(): void {
    this.#hasSaidEnd = true;
  }

  release(io: WireIo): ReleasedWire {
    const unsent = this.#writer.release(io); // it may change our key
    const failed = this.#hasSaidEnd || !this.#reader.isWhole;
    const { opened, sealed } = this.#reader.left;
    const secrets = Buffer.concat([this.#inward.secret, this.#outward.secret, sealed]);
    const records = { opened: this.#inward.sequence, sealed: this.#outward.sequence, secrets };
    this.drop(io);
    return { failed, unsent, opened, records };
  }

  /** The library wipes the keys. */
  drop(io: WireIo): void {
    this.#writer.drop(io);
    this.#memory.evp.free(this.#contexts);
  }
}
