import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { BROKEN, ENDED, type Ssl } from "#platform/linux/ssl.ts";
import type { SslTickets } from "#platform/linux/ssl-tickets.ts";
import { type AlertName, encodeAlert } from "#transport/tls13/alerts.ts";
import { RECORD } from "#transport/tls13/records.ts";
import type { ReleasedWire, ReturningWire } from "./framed.ts";
import type { RecordAnswers, RecordReader } from "./record-reader.ts";
import type { RecordWriter } from "./record-writer.ts";
import { TlsBulk } from "./tls-bulk.ts";
import type { TlsRecordSource } from "./tls-records.ts";
import type { LeavableWire } from "./vision-wire.ts";
import type { WireIo } from "./wire.ts";
import { Readiness } from "./readiness.ts";

/** A read or write of this size marks a connection as bulk. */
const BULK_BYTES = 64 * 1024;
/** One write of the whole buffer, sealed, and some answers to key updates of a peer that does not read; more ends it. */
const MOST_WIRE_BYTES = 320 * 1024;

export interface TlsWireOptions {
  /** Of the thread, for bulk; null: the library does it all. */
  readonly records?: () => TlsRecordSource | null;
  /** What its session is kept in at the end; null: nowhere. */
  readonly tickets?: SslTickets | null;
  /** It may be released, so all that was read is to lie in the object. */
  readonly returns?: boolean;
  /** It may be left behind, so nothing behind a record is read. */
  readonly isExact?: boolean;
}

/** A socket that speaks TLS; its handshake is done. */
export class TlsWire extends Readiness implements ReturningWire, LeavableWire, RecordAnswers {
  readonly #ssl: Ssl;
  readonly #address: bigint;
  readonly #tickets: SslTickets | null;
  readonly fd: number;
  readonly #returns: boolean;
  #isExact: boolean;
  /** Nothing of TLS is written any more. */
  #isSilent = false;
  /** In bulk, and something may wait in its buffer. */
  #wide = false;
  /** The result of all further reads: 0 or an errno; null while reading continues. */
  #last: number | null = null;
  readonly #bulk: TlsBulk;
  /** Sealed, and not taken by the socket yet. */
  #wire: Uint8Array | null = null;
  #said = false;
  /** Neither direction can continue. */
  #failed = false;

  /** The object is the wire's own from here on, with its output collected (`SslOutgoing`). */
  constructor(
    ssl: Ssl,
    address: bigint,
    fd: number,
    { tickets = null, returns = false, isExact = false, records = () => null }: TlsWireOptions = {},
  ) {
    super();
    this.#returns = returns;
    this.#isExact = isExact;
    this.#ssl = ssl;
    this.#address = address;
    this.#tickets = tickets;
    this.#bulk = new TlsBulk(ssl, { object: address, fd, answers: this }, records);
    this.fd = fd;
    ssl.readAhead(address, !isExact);
  }

  get pending(): boolean {
    return this.#wire !== null || this.#bulk.writer?.pending === true;
  }

  read(io: WireIo, size: number): number {
    if (this.#last !== null) return this.#last;
    const reader = this.#reader(io);
    if (reader !== null) return this.#found(reader, reader.read(io, size));
    const isSingle = this.#isExact || this.#bulk.isLooking;
    const bytes = isSingle ? this.#ssl.readRecord(this.#address, size) : this.#ssl.read(this.#address, size);
    this.#bulk.countOpened(this.#ssl.pieces);
    const why = this.#see(io, this.#ssl.outcome);
    if (bytes >= BULK_BYTES && this.readable && !this.#wide && !this.#returns) this.#onBulk();
    return bytes > 0 ? bytes : why;
  }

  /** Null: the library reads what comes next. */
  #reader(io: WireIo): RecordReader | null {
    return this.#bulk.isLooking ? this.#bulk.look(io) : this.#bulk.reader;
  }

  #onBulk(): void {
    if (!this.#bulk.beginReading()) this.#wide = this.#ssl.incoming.widen(this.#address);
  }

  /** A short read says that there is no more, unless it is the last. */
  #found(reader: RecordReader, bytes: number): number {
    if (!reader.isDry) this.readable = true;
    else if (!this.hungUp) this.readable = false;
    return bytes === BROKEN ? this.#fail(bytes) : bytes;
  }

  onTicket(): void {}

  onKeyWanted(): void {
    const { writer } = this.#bulk;
    if (writer === null) this.#ssl.updateKey(this.#address);
    else writer.mustUpdateKey = true;
  }

  onFault(io: WireIo, alert: AlertName): void {
    this.#sayAlert(io, alert);
  }

  available(io: WireIo): number {
    if (this.#last !== null) return this.#last;
    const reader = this.#reader(io);
    if (reader !== null) return this.#found(reader, reader.available(io));
    return this.#see(io, this.#ssl.available(this.#address));
  }

  /** What an attempt to read came to. */
  #see(io: WireIo, outcome: number): number {
    const sent = this.#send(io); // it may have answered a key update
    if (sent < 0) return (this.#last = sent);
    if (outcome > 0 || outcome === EINTR) {
      // An earlier attempt in the same turn found nothing; what came since, the library may have read whole. No event says so.
      this.readable = true;
      return outcome;
    }
    if (outcome === ENDED) return (this.#last = 0);
    if (outcome !== EAGAIN) return (this.#last = this.#fail(outcome));
    this.readable = false;
    this.#narrow(true);
    return EAGAIN;
  }

  #narrow(isEmpty: boolean): void {
    if (this.#wide) this.#ssl.incoming.narrow(this.#address, isEmpty);
    this.#wide = false;
  }

  write(io: WireIo, size: number): number {
    if (this.#bulk.writer !== null) return this.#writeRecords(io, this.#bulk.writer, size);
    const bytes = this.#ssl.write(this.#address, size);
    const mayLeave = size >= BULK_BYTES && !this.#returns && !this.#isExact;
    const writer = mayLeave ? this.#bulk.takeWriting() : null;
    this.#bulk.countSealed(bytes);
    const sent = this.#send(io);
    this.#bulk.writer = writer;
    return sent < 0 ? sent : bytes;
  }

  #writeRecords(io: WireIo, writer: RecordWriter, size: number): number {
    const taken = writer.write(io, size);
    this.writable = !writer.pending;
    return taken < 0 ? this.#fail(taken) : taken;
  }

  /** What the library has sealed goes out, behind what waits already. 0, or an errno. */
  #send(io: WireIo): number {
    if (this.#bulk.writer !== null) return this.#answer(this.#bulk.writer);
    if (this.#isSilent) this.#ssl.outgoing.discard();
    const rest = this.#wire === null ? this.#ssl.outgoing.send(this.fd) : this.#ssl.outgoing.take();
    if (rest === null) return 0;
    if (typeof rest === "number") return this.#fail(rest);
    this.writable = false;
    io.bufferedBytes += rest.length;
    this.#wire = this.#wire === null ? rest : Buffer.concat([this.#wire, rest]);
    return this.#wire.length > MOST_WIRE_BYTES ? this.#fail(BROKEN) : 0;
  }

  /** The library has answered a change of keys by one that its own numbers do not fit any more. */
  #answer(writer: RecordWriter): number {
    if (this.#ssl.outgoing.discard()) writer.mustUpdateKey = true;
    return 0;
  }

  #fail(errno: number): number {
    this.#failed = true;
    return errno;
  }

  flush(io: WireIo): number {
    const { writer } = this.#bulk;
    if (this.#wire === null) return writer === null ? EAGAIN : this.#flushRecords(io, writer);
    const piece = this.#wire.subarray(0, io.calls.buffer.length);
    io.calls.buffer.set(piece);
    const sent = io.calls.send(this.fd, piece.length);
    if (sent > 0) {
      io.bufferedBytes -= sent;
      this.#wire = sent < this.#wire.length ? this.#wire.subarray(sent) : null;
    }
    if (sent === EAGAIN || (sent >= 0 && sent < piece.length)) this.writable = false;
    else if (sent < 0 && sent !== EINTR) this.#fail(sent);
    return sent;
  }

  #flushRecords(io: WireIo, writer: RecordWriter): number {
    const sent = writer.flush(io);
    if (writer.pending) this.writable = false;
    return sent;
  }

  /** First in TLS, then in TCP. */
  endWriting(io: WireIo): number {
    const said = this.#sayAlert(io, "close_notify");
    const sent = said < 0 ? said : this.#send(io);
    if (sent < 0) return sent;
    if (!this.pending) return io.calls.endWriting(this.fd);
    this.writable = false;
    return EAGAIN;
  }

  /** Nothing follows it. The library says only the end; a fault is not said before what it has sealed is out. */
  #sayAlert(io: WireIo, alert: AlertName): number {
    const { writer } = this.#bulk;
    if (this.#said || (this.#wire !== null && writer !== null)) return 0;
    this.#said = true;
    if (writer !== null) return writer.writeShort(io, RECORD.alert, encodeAlert(alert));
    return alert === "close_notify" ? this.#ssl.shutdown(this.#address) : 0;
  }

  override onEvents(events: number): void {
    super.onEvents(events);
    if (this.readable) this.#bulk.reader?.wake();
  }

  stay(): void {
    this.#isExact = false;
    this.#ssl.readAhead(this.#address);
  }

  leaveReading(): null {
    return null;
  }

  leaveWriting(): void {
    this.#isSilent = true;
  }

  /** The object is the caller's again. */
  release(io: WireIo): ReleasedWire {
    const unsent = this.#wire;
    if (this.#ssl.outgoing.discard()) this.#failed = true; // its peer would miss it
    if (!this.#ssl.outgoing.restore(this.#address, this.fd)) this.#failed = true;
    this.#forget(io);
    return { failed: this.#failed, unsent, opened: null, records: null };
  }

  drop(io: WireIo): void {
    this.#ssl.outgoing.discard(); // a fault of ours may have left something
    this.#narrow(false);
    this.#bulk.writer?.drop(io);
    this.#bulk.free();
    this.#tickets?.keep(this.#address, performance.now());
    this.#ssl.free(this.#address);
    this.#forget(io);
  }

  #forget(io: WireIo): void {
    if (this.#wire !== null) io.bufferedBytes -= this.#wire.length;
    this.#wire = null;
  }
}
