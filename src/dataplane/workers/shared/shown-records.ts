/**
 * What stands in front of the first bytes of a client whose records of TLS 1.3 a worker has begun, and by which the main thread can go
 * on: RECORD(2) SUITE(2) OPENED(4) SEALED(4) NAME(2) ALPN(1) SECRETS(1+n).
 */
import { byteAt } from "#lib/at.ts";

const FIXED_BYTES = 16;

export interface ShownRecords {
  /** So long is the record in the socket, with its header, whose payload is shown; 0: none is. */
  readonly recordBytes: number;
  readonly suite: number;
  /** Records before that with the present keys, and those of the other direction. */
  readonly opened: number;
  readonly sealed: number;
  /** Index in the list of the listener's names. */
  readonly name: number;
  /** Index in `ALPN_KINDS`. */
  readonly alpn: number;
  /** The traffic secrets of opening and sealing. */
  readonly secrets: Uint8Array;
}

export function encodeShown(shown: ShownRecords): Buffer {
  const { recordBytes, suite, opened, sealed, name, alpn, secrets } = shown;
  const bytes = Buffer.allocUnsafe(FIXED_BYTES + secrets.length);
  bytes.writeUInt16BE(recordBytes, 0);
  bytes.writeUInt16BE(suite, 2);
  bytes.writeUInt32BE(opened, 4);
  bytes.writeUInt32BE(sealed, 8);
  bytes.writeUInt16BE(name, 12);
  bytes[14] = alpn;
  bytes[15] = secrets.length;
  bytes.set(secrets, FIXED_BYTES);
  return bytes;
}

/** `size`: where the first bytes begin. */
export function decodeShown(bytes: Buffer): ShownRecords & { readonly size: number } {
  const size = FIXED_BYTES + byteAt(bytes, 15);
  return {
    recordBytes: bytes.readUInt16BE(0),
    suite: bytes.readUInt16BE(2),
    opened: bytes.readUInt32BE(4),
    sealed: bytes.readUInt32BE(8),
    name: bytes.readUInt16BE(12),
    alpn: byteAt(bytes, 14),
    secrets: Uint8Array.from(bytes.subarray(FIXED_BYTES, size)),
    size,
  };
}
