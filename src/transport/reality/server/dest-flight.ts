/** What dest answers to an admitted hello: its ServerHello, and how long each record behind it is. */
import { MESSAGE } from "#transport/tls13/handshake-messages.ts";
import { RETRY_RANDOM } from "#transport/tls13/hello-messages.ts";
import { HEADER_BYTES, RECORD } from "#transport/tls13/records.ts";

/** A longer flight is not looked at. */
export const MAX_FLIGHT_BYTES = 32 * 1024;
/** A first protected record that is longer holds dest's whole flight: EncryptedExtensions alone is short. */
const COALESCED_BYTES = 512;
/** EncryptedExtensions, Certificate, CertificateVerify, Finished. */
const MESSAGES = 4;
const CHANGE_BYTES = HEADER_BYTES + 1;
/** Of a ServerHello: TYPE(1) LENGTH(3) VERSION(2) in front. */
const RANDOM_AT = 6;
/** Of a record with our certificate: header, content's type and tag, and what the message has besides the certificate. */
const CERTIFICATE_EXTRA = 35;
/** With EncryptedExtensions, CertificateVerify by Ed25519 and the longest Finished in the same record. */
const COALESCED_EXTRA = CERTIFICATE_EXTRA + 6 + 72 + 52;

export interface DestFlight {
  /** The whole message. */
  readonly serverHello: Buffer;
  /** Of the records of the flight with their headers: four, or one that holds all messages. */
  readonly lengths: readonly number[];
  /** From the first record of the ServerHello to the last one of the flight; more may have come behind it. */
  readonly bytes: number;
}

interface SeenRecord {
  readonly type: number;
  /** With its header. */
  readonly size: number;
  readonly body: Buffer;
}

/** `bytes`: all that dest has sent so far. `none`: it answers in a way that cannot be imitated. */
export function readDestFlight(bytes: Buffer): DestFlight | "more" | "none" {
  const records = splitRecords(bytes);
  if (records === "none") return "none";
  const [hello, change, ...flight] = records;
  if (hello === undefined) return limited(bytes);
  const { type, body } = hello;
  if (type !== RECORD.handshake || body[0] !== MESSAGE.serverHello || body.length < 4) return "none";
  if (body.readUIntBE(1, 3) !== body.length - 4) return "none";
  if (body.subarray(RANDOM_AT, RANDOM_AT + RETRY_RANDOM.length).equals(RETRY_RANDOM)) return "none";
  if (change === undefined) return limited(bytes);
  if (change.type !== RECORD.changeCipherSpec || change.size !== CHANGE_BYTES) return "none";
  if (flight.some((record) => record.type !== RECORD.applicationData)) return "none";
  const [first] = flight;
  if (first === undefined) return limited(bytes);
  const count = first.size > COALESCED_BYTES ? 1 : MESSAGES;
  if (flight.length < count) return limited(bytes);
  const lengths = flight.slice(0, count).map(({ size }) => size);
  const flightBytes = lengths.reduce((sum, length) => sum + length, hello.size + change.size);
  return { serverHello: Buffer.from(body), lengths, bytes: flightBytes };
}

/** How long dest's record with its certificates is, and how long it must be for a certificate of ours of so many bytes. */
export function certificateRecord({ lengths }: DestFlight, derBytes: number) {
  const [first = 0, second = first] = lengths;
  const extra = lengths.length === 1 ? COALESCED_EXTRA : CERTIFICATE_EXTRA;
  return { bytes: second, leastBytes: derBytes + extra };
}

function limited(bytes: Buffer): "more" | "none" {
  return bytes.length < MAX_FLIGHT_BYTES ? "more" : "none";
}

/** The records that are whole. */
function splitRecords(bytes: Buffer): readonly SeenRecord[] | "none" {
  const records: SeenRecord[] = [];
  for (let at = 0; at + HEADER_BYTES <= bytes.length;) {
    if (bytes.readUInt16BE(at + 1) !== 0x0303) return "none";
    const size = HEADER_BYTES + bytes.readUInt16BE(at + 3);
    if (at + size > bytes.length) break;
    records.push({ type: bytes.readUInt8(at), size, body: bytes.subarray(at + HEADER_BYTES, at + size) });
    at += size;
  }
  return records;
}
