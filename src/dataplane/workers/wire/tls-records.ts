/**
 * Records of a connection that libssl has begun, in bulk: libcrypto alone opens and seals them, without the copies that the library
 * makes between socket and caller. docs/adr/0123-bulk-over-tls-is-sealed-without-libssl.md
 */
import { byteAt } from "#lib/at.ts";
import { type Side, SslSecrets } from "#platform/linux/ssl-secrets.ts";
import { type CipherSuite, cipherSuite } from "#transport/tls13/cipher-suites.ts";
import { DirectionKeys } from "#transport/tls13/direction-keys.ts";
import { lastBeforePadding } from "#transport/tls13/padding.ts";
import { HEADER_BYTES, MAX_SEALED_BYTES, RECORD, SEALED_EXTRA_BYTES } from "#transport/tls13/records.ts";
import { type CipherMemory, TAG_BYTES } from "./cipher-memory.ts";
import { RecordCipher } from "./record-cipher.ts";
import { type RecordAnswers, RecordReader } from "./record-reader.ts";
import { RecordWriter } from "./record-writer.ts";
import { SocketBelow } from "./sealed-below.ts";
import type { WireIo } from "./wire.ts";

/** Records that were not counted at most, for they were none of the wire's: of the handshake's end, and what came with it. */
const UNCOUNTED = 24;
/** Of the memory of the wire: behind the longest record. */
const TRIAL_AT = 32 * 1024;
const [SEAL, OPEN] = [1, 0];

/** Where they are and how many of them there were before, more or less. */
interface Sample {
  readonly address: bigint;
  readonly bytes: number;
  readonly counted: number;
}

export interface BegunConnection {
  /** Of libssl. */
  readonly object: bigint;
  readonly fd: number;
  readonly answers: RecordAnswers;
}

/** What it takes to go on without libssl, of one thread. */
export class TlsRecordSource {
  readonly #memory: CipherMemory;
  readonly #secrets: SslSecrets;

  private constructor(memory: CipherMemory, secrets: SslSecrets) {
    this.#memory = memory;
    this.#secrets = secrets;
  }

  /** Null: it cannot be had. */
  static open(memory: CipherMemory): TlsRecordSource | null {
    const secrets = SslSecrets.open();
    return secrets === null ? null : new TlsRecordSource(memory, secrets);
  }

  /** Null: libssl has to do it all. */
  for(connection: BegunConnection): TlsRecords | null {
    const suite = cipherSuite(this.#secrets.suiteOf(connection.object));
    return suite === null ? null : new TlsRecords(this.#memory, this.#secrets, suite, connection);
  }
}

/** Keys of either direction, found where libssl has them. */
export class TlsRecords {
  readonly #memory: CipherMemory;
  readonly #secrets: SslSecrets;
  readonly #suite: CipherSuite;
  readonly #connection: BegunConnection;
  readonly #contexts = { sealing: 0n, opening: 0n };
  /** Nothing led to a record's key: it is not looked for again. */
  readonly #lost = new Set<Side>();
  /** The record that keys were found by last has payload. */
  #isPayload = false;

  constructor(memory: CipherMemory, secrets: SslSecrets, suite: CipherSuite, connection: BegunConnection) {
    this.#memory = memory;
    this.#secrets = secrets;
    this.#suite = suite;
    this.#connection = connection;
  }

  /** No keys fitted a record of that direction: it stays libssl's. */
  hasLost(side: Side): boolean {
    return this.#lost.has(side);
  }

  /** The length of the next record, framing included, once the socket has it whole; else 0. Only while libssl has nothing of it. */
  nextRecord({ calls }: WireIo): number {
    const { wire, wireAt } = this.#memory;
    return wholeRecord(wire, calls.peekAt(this.#connection.fd, wireAt, HEADER_BYTES + MAX_SEALED_BYTES));
  }

  /**
   * Keys of what comes behind that record, of so many bytes, which is payload; null: it is not, or there are none. `counted`: records
   * that libssl has opened, more or less. Who leaves out records on the way, or says some again, chooses its number: libssl, which has
   * counted all, is to open it, too.
   */
  findReading(bytes: number, counted: number): DirectionKeys | null {
    const keys = this.#keysOf("inward", { address: this.#memory.wireAt, bytes, counted });
    return keys === null || !this.#isPayload ? null : this.#behind(keys, 1);
  }

  #behind({ secret, sequence }: DirectionKeys, records: number): DirectionKeys {
    return new DirectionKeys(this.#suite, secret, sequence + records);
  }

  /** Goes on with reading. */
  takeReading(keys: DirectionKeys): RecordReader {
    const { evp } = this.#memory;
    const { fd, answers } = this.#connection;
    this.#contexts.opening = evp.openContext(this.#suite.aead, keys.key, OPEN);
    const cipher = new RecordCipher(this.#memory, this.#contexts.opening, keys);
    const below = new SocketBelow(this.#memory, fd);
    return new RecordReader(this.#memory, below, cipher, { answers, rest: null, isExact: false });
  }

  /** Goes on with writing behind `sealed`, which is all that libssl has made of one write. `counted`: records before it. */
  takeWriting(sealed: Uint8Array, address: bigint, counted: number): RecordWriter | null {
    const bytes = wholeRecord(sealed, sealed.length);
    const keys = bytes === 0 ? null : this.#keysOf("outward", { address, bytes, counted });
    if (keys === null) return null;
    const { records, most } = measured(sealed);
    const next = this.#behind(keys, records);
    this.#contexts.sealing = this.#memory.evp.openContext(this.#suite.aead, next.key, SEAL);
    const cipher = new RecordCipher(this.#memory, this.#contexts.sealing, next);
    return new RecordWriter(this.#memory, this.#connection.fd, cipher, most);
  }

  /** Those that the record there is the next one of. */
  #keysOf(side: Side, sample: Sample): DirectionKeys | null {
    let sequence = -1;
    const fits = (secret: Uint8Array): boolean => (sequence = this.#sequenceOf(secret, sample)) >= 0;
    const secret = this.#secrets.find(this.#connection.object, side, this.#suite.hashBytes, fits);
    if (secret !== null) return new DirectionKeys(this.#suite, secret, sequence);
    this.#lost.add(side);
    return null;
  }

  /** Under which number that secret opens the record; -1: under none. */
  #sequenceOf(secret: Uint8Array, { address, bytes, counted }: Sample): number {
    const { evp, wire, wireAt } = this.#memory;
    const first = Math.max(0, counted - UNCOUNTED);
    const keys = new DirectionKeys(this.#suite, secret, first);
    const contexts = { opening: evp.openContext(this.#suite.aead, keys.key, OPEN), sealing: 0n };
    const cipher = new RecordCipher(this.#memory, contexts.opening, keys);
    const plainBytes = bytes - HEADER_BYTES - TAG_BYTES;
    const isNext = (): boolean => {
      cipher.begin(address);
      return evp.openAt(
        contexts.opening,
        wireAt + BigInt(TRIAL_AT),
        address + BigInt(HEADER_BYTES),
        plainBytes,
      );
    };
    try {
      let sequence = first;
      while (sequence <= counted + UNCOUNTED && !isNext()) sequence++;
      const end = lastBeforePadding(wire, TRIAL_AT, TRIAL_AT + plainBytes);
      this.#isPayload = end > TRIAL_AT && byteAt(wire, end) === RECORD.applicationData;
      return sequence <= counted + UNCOUNTED ? sequence : -1;
    } finally {
      evp.free(contexts);
      wire.fill(0, TRIAL_AT, TRIAL_AT + plainBytes);
    }
  }

  /** The library wipes the keys. */
  free(): void {
    this.#memory.evp.free(this.#contexts);
  }
}

/** Of the first record, with its header, if so many bytes have all of it; else 0. */
function wholeRecord(wire: Uint8Array, got: number): number {
  if (got < HEADER_BYTES || byteAt(wire, 0) !== RECORD.applicationData) return 0;
  const bytes = HEADER_BYTES + ((byteAt(wire, 3) << 8) | byteAt(wire, 4));
  return bytes > got || bytes <= HEADER_BYTES + TAG_BYTES ? 0 : bytes;
}

/** How many records, and the most content of one: the peer may have asked for short ones (RFC 6066 §4). */
function measured(sealed: Uint8Array): { readonly records: number; readonly most: number } {
  let [records, most] = [0, 0];
  for (let at = 0; at < sealed.length; records++) {
    const bytes = (byteAt(sealed, at + 3) << 8) | byteAt(sealed, at + 4);
    most = Math.max(most, bytes - SEALED_EXTRA_BYTES);
    at += HEADER_BYTES + bytes;
  }
  return { records, most };
}
