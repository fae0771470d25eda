/** What one side of a connection says, in records: in the clear until it has a key. */
import { type AlertName, encodeAlert } from "./alerts.ts";
import type { CipherSuite } from "./cipher-suites.ts";
import { encodeMessage, MESSAGE } from "./handshake-messages.ts";
import { MAX_CONTENT_BYTES, plainRecord, RECORD, RecordSealer } from "./records.ts";

export const CHANGE_CIPHER_SPEC = Buffer.of(1);
const FIRST_VERSION = 0x0301;
const NOTHING = Buffer.alloc(0);

export class RecordOutput implements Disposable {
  readonly #portable: boolean;
  #waiting: Buffer[] = [];
  #sealer: RecordSealer | null = null;
  #saidHello = false;
  #saidChange = false;

  /** `portable`: by `node:crypto` alone, without FFI. */
  constructor(portable: boolean) {
    this.#portable = portable;
  }

  /** Null: it has no key yet, or no more. */
  get sealer(): RecordSealer | null {
    return this.#sealer;
  }

  /** `take` has nothing. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Bytes for the peer that were not taken; null: none. */
  take(): Buffer | null {
    if (this.#waiting.length === 0) return null;
    const [first = NOTHING, ...others] = this.#waiting;
    this.#waiting = [];
    return others.length === 0 ? first : Buffer.concat([first, ...others]);
  }

  /** What is said from now on is sealed by this secret. `limit`: of the content of one record, where the peer has set one. */
  sealWith(suite: CipherSuite, secret: Buffer, limit: number | null): void {
    this.#sealer?.[Symbol.dispose]();
    this.#sealer = new RecordSealer(suite, secret, {
      portable: this.#portable,
      ...(limit === null ? {} : { mostContent: limit }),
    });
  }

  /** Another owner of the connection has sealed `sequence` records meanwhile; its secret is the one in force. */
  sealOn(suite: CipherSuite, secret: Buffer, sequence: number): void {
    const mostContent = this.#sealer?.mostContent ?? MAX_CONTENT_BYTES;
    this.#sealer = new RecordSealer(suite, secret, { mostContent, portable: this.#portable, sequence });
  }

  /** Of the handshake. */
  sendMessages(messages: Buffer): void {
    if (this.#saidHello && !this.#saidChange) {
      this.#saidChange = true;
      this.#waiting.push(plainRecord(RECORD.changeCipherSpec, CHANGE_CIPHER_SPEC)); // RFC 8446 §D.4
    }
    if (this.#sealer !== null) this.#waiting.push(this.#sealer.seal(RECORD.handshake, messages));
    else
      this.#waiting.push(
        plainRecord(RECORD.handshake, messages, this.#saidHello ? undefined : FIRST_VERSION),
      );
    this.#saidHello = true;
  }

  /** Whole records as they are. */
  sendRecords(records: Buffer): void {
    this.#waiting.push(records);
  }

  /** A record without payload, filled up to this length with its header. */
  sendPadding(recordBytes: number): void {
    if (this.#sealer !== null)
      this.#waiting.push(this.#sealer.seal(RECORD.applicationData, NOTHING, recordBytes));
  }

  /** The peer has asked for it. */
  sendKeyUpdate(): void {
    if (this.#sealer !== null) this.#waiting.push(updateKey(this.#sealer));
  }

  sendAlert(name: AlertName): void {
    this.#waiting.push(this.alert(name));
  }

  alert(name: AlertName): Buffer {
    const body = encodeAlert(name);
    return this.#sealer === null ? plainRecord(RECORD.alert, body) : this.#sealer.seal(RECORD.alert, body);
  }

  [Symbol.dispose](): void {
    this.#sealer?.[Symbol.dispose]();
    this.#sealer = null;
  }
}

/** Records for the payload, behind a KeyUpdate where the key has sealed enough. */
export function sealPayload(sealer: RecordSealer, payload: Uint8Array): Buffer {
  if (!sealer.isWorn) return sealer.seal(RECORD.applicationData, payload);
  const update = updateKey(sealer);
  return Buffer.concat([update, sealer.seal(RECORD.applicationData, payload)]);
}

function updateKey(sealer: RecordSealer): Buffer {
  const told = sealer.seal(RECORD.handshake, encodeMessage(MESSAGE.keyUpdate, Buffer.of(0)));
  sealer.update();
  return told;
}
