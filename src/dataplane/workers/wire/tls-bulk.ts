/**
 * Whether libssl or records of our own move each direction of a connection. The library begins both; in bulk each goes on by itself
 * once its keys are found. docs/adr/0123-bulk-over-tls-is-sealed-without-libssl.md
 */
import { RECORD_BYTES, type Ssl } from "#platform/linux/ssl.ts";
import type { DirectionKeys } from "#transport/tls13/direction-keys.ts";
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
  /** Behind a record that is still in the socket, and that the library opens, too: it knows which number comes next. */
  #found: DirectionKeys | null = null;
  /** It has. */
  #isConfirmed = false;
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
    if (records === null) return this.#stopLooking();
    if (this.#found !== null) return this.#isConfirmed ? this.#takeReading(records, this.#found) : null;
    this.#found = this.#find(io, records);
    if (this.#found === null && (records.hasLost("inward") || --this.#looks === 0)) this.#stopLooking();
    return null;
  }

  #stopLooking(): null {
    this.#looks = 0;
    this.#ssl.readAhead(this.#connection.object);
    return null;
  }

  /** A record that has not come whole says nothing of the keys. */
  #find(io: WireIo, records: TlsRecords): DirectionKeys | null {
    const bytes = records.nextRecord(io);
    return bytes === 0 ? null : records.findReading(bytes, this.#opened);
  }

  #takeReading(records: TlsRecords, keys: DirectionKeys): RecordReader {
    this.#looks = 0;
    this.reader = records.takeReading(keys);
    return this.reader;
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
    this.#isConfirmed = this.#found !== null && records > 0;
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
