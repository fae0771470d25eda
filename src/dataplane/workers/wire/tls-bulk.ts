/**
 * Whether libssl or records of our own move each direction of a connection. The library begins both; in bulk each goes on by itself
 * once its keys are found. docs/adr/0123-bulk-over-tls-is-sealed-without-libssl.md
 */
import { RECORD_BYTES, type Ssl } from "#platform/linux/ssl.ts";
import type { RecordReader } from "./record-reader.ts";
import type { RecordWriter } from "./record-writer.ts";
import type { BegunConnection, TlsRecords, TlsRecordSource } from "./tls-records.ts";
import type { WireIo } from "./wire.ts";

/** Records at whose start the next one is looked for in the socket, behind a read in bulk. */
const LOOKS = 16;

export class TlsBulk {
  /** Null: the library reads; and writes. */
  reader: RecordReader | null = null;
  writer: RecordWriter | null = null;
  readonly #ssl: Ssl;
  readonly #connection: BegunConnection;
  readonly #source: () => TlsRecordSource | null;
  /** Null: the library does it all; undefined: there was no bulk yet. */
  #records: TlsRecords | null | undefined;
  #looks = 0;
  /** Records that the library has opened and sealed, more or less. */
  #opened = 0;
  #sealed = 0;

  constructor(ssl: Ssl, connection: BegunConnection, source: () => TlsRecordSource | null) {
    this.#ssl = ssl;
    this.#connection = connection;
    this.#source = source;
  }

  /** The library is to read one record at a time, and nothing behind it. */
  get isLooking(): boolean {
    return this.#looks > 0;
  }

  #begun(): TlsRecords | null {
    if (this.#records === undefined) this.#records = this.#source()?.for(this.#connection) ?? null;
    return this.#records;
  }

  /** Behind a read in bulk: the next records are looked for. False: reading stays the library's. */
  beginReading(): boolean {
    const records = this.#begun();
    if (records === null || records.hasLost("inward")) return false;
    this.#looks = LOOKS;
    this.#ssl.readAhead(this.#connection.object, false);
    return true;
  }

  /** Before each read while `isLooking`: what goes on with reading; null: the library still does. */
  look(io: WireIo): RecordReader | null {
    if (this.#ssl.hasPending(this.#connection.object)) return null;
    const records = this.#begun();
    this.reader = this.#tryReading(io, records);
    const isOver = this.reader !== null || records === null || records.hasLost("inward");
    this.#looks = isOver ? 0 : this.#looks - 1;
    if (this.reader === null && this.#looks === 0) this.#ssl.readAhead(this.#connection.object);
    return this.reader;
  }

  /** A record that has not come whole says nothing of the keys. */
  #tryReading(io: WireIo, records: TlsRecords | null): RecordReader | null {
    const bytes = records?.nextRecord(io) ?? 0;
    return records === null || bytes === 0 ? null : records.takeReading(bytes, this.#opened);
  }

  /** Behind a write in bulk, whose records are still to be sent: what goes on with writing behind them; null: the library does. */
  takeWriting(): RecordWriter | null {
    const records = this.#begun();
    if (records === null || records.hasLost("outward")) return null;
    const { sealed, address } = this.#ssl.outgoing.show();
    return records.takeWriting(sealed, address, this.#sealed);
  }

  countOpened(records: number): void {
    this.#opened += records;
  }

  /** That a write of so many bytes went through the library; below 0: it failed. */
  countSealed(bytes: number): void {
    this.#sealed += Math.ceil(Math.max(0, bytes) / RECORD_BYTES);
  }

  /** The library wipes the keys. */
  free(): void {
    this.#records?.free();
  }
}
