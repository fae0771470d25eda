/**
 * A value that shows damage. Layout, integers big endian:
 * TAG(4) = `TCZ1` (Zstandard) or `TCR1` (plain, only read) | LENGTH(4) of the original | CRC32C(4) | PAYLOAD
 * The checksum covers the record's key in UTF-8, one NUL and the original, so a blob under another key does not pass.
 */
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { StoreError } from "#core/errors.ts";
import { crc32c } from "./crc32c.ts";

/** Bytes were changed or lost: what was stored cannot be had from here. */
export class DamageError extends StoreError {}

const HEAD_BYTES = 12;
const MAX_ORIGINAL_BYTES = 32 * 1024 * 1024;
const PACKED = 0x54435a31; // TCZ1
const PLAIN = 0x54435231; // TCR1
const NUL = new Uint8Array(1);
const QUICKLY = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Fewer bytes gain nothing from compression, and setting a compressor up costs more than all the rest. */
const WORTH_BYTES = 256;
/** As stored: so much is unpacked at once. */
const BATCH_BYTES = 64 * 1024;
/** The same of what comes out; more is unpacked one by one. */
const MAX_BATCH_BYTES = 1024 * 1024;
/** The runtime takes no less. */
const LEAST_CHUNK_BYTES = 64;
/** Of a Zstandard frame with its length in one byte and no checksum: RFC 8878 §3.1.1. */
const RAW_FRAME = Buffer.from("28b52ffd20", "hex");
/** In a block header: the last one, and as it is (RFC 8878 §3.1.1.2). */
const LAST_RAW = 1;

/** Throws `StoreError` for more than 32 MiB. */
export function seal(key: string, original: Uint8Array): Buffer {
  if (original.length > MAX_ORIGINAL_BYTES)
    throw new StoreError(
      `record ${key}: ${original.length} bytes, at most ${MAX_ORIGINAL_BYTES} can be stored`,
    );
  const payload = original.length < WORTH_BYTES ? rawFrame(original) : zstdCompressSync(original, QUICKLY);
  const blob = Buffer.allocUnsafeSlow(HEAD_BYTES + payload.length); // it travels between threads, without neighbours
  blob.writeUInt32BE(PACKED, 0);
  blob.writeUInt32BE(original.length, 4);
  blob.writeUInt32BE(checksum(key, original), 8);
  payload.copy(blob, HEAD_BYTES);
  return blob;
}

/** Throws `DamageError`; never makes more than 32 MiB of a blob. */
export function unseal(key: string, blob: Uint8Array): Buffer {
  const bytes = Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength);
  if (bytes.length < HEAD_BYTES) throw new DamageError(`record ${key}: cut off`);
  const tag = bytes.readUInt32BE(0);
  const length = bytes.readUInt32BE(4);
  if (tag !== PACKED && tag !== PLAIN) throw new DamageError(`record ${key}: unknown tag`);
  if (length > MAX_ORIGINAL_BYTES) throw new DamageError(`record ${key}: impossible length`);
  const payload = bytes.subarray(HEAD_BYTES);
  const original = tag === PLAIN ? Buffer.from(payload) : unpack(payload, length);
  if (original === null) throw new DamageError(`record ${key}: cannot be decompressed`);
  if (original.length !== length) throw new DamageError(`record ${key}: wrong length`);
  if (checksum(key, original) !== bytes.readUInt32BE(8))
    throw new DamageError(`record ${key}: wrong checksum`);
  return original;
}

/**
 * The values of many records, in their order. Unpacked some hundred at once, because setting a decompressor up costs more than
 * what it does for one; each has its own length and checksum looked at. Throws `DamageError` as `unseal` does, for the first
 * that is damaged.
 */
export function* unsealAll(
  blobs: Iterable<readonly [key: string, blob: Uint8Array]>,
): Generator<readonly [key: string, value: Buffer]> {
  let batch: (readonly [key: string, blob: Uint8Array])[] = [];
  let bytes = 0;
  for (const one of blobs) {
    batch.push(one);
    bytes += one[1].length;
    if (bytes < BATCH_BYTES) continue;
    yield* unsealed(batch);
    batch = [];
    bytes = 0;
  }
  yield* unsealed(batch);
}

function unsealed(batch: readonly (readonly [key: string, blob: Uint8Array])[]): Iterable<[string, Buffer]> {
  return unpackTogether(batch) ?? batch.map(([key, blob]): [string, Buffer] => [key, unseal(key, blob)]);
}

/** Null: not all of them are sound and small; which one is not shows when they are opened one by one. */
function unpackTogether(
  batch: readonly (readonly [key: string, blob: Uint8Array])[],
): readonly [string, Buffer][] | null {
  const heads: { readonly key: string; readonly length: number; readonly sum: number }[] = [];
  const payloads: Buffer[] = [];
  let sizeBytes = 0;
  for (const [key, blob] of batch) {
    const bytes = Buffer.from(blob.buffer, blob.byteOffset, blob.byteLength);
    if (bytes.length < HEAD_BYTES || bytes.readUInt32BE(0) !== PACKED) return null;
    const length = bytes.readUInt32BE(4);
    sizeBytes += length;
    if (sizeBytes > MAX_BATCH_BYTES) return null;
    heads.push({ key, length, sum: bytes.readUInt32BE(8) });
    payloads.push(bytes.subarray(HEAD_BYTES));
  }
  const all = unpack(Buffer.concat(payloads), sizeBytes);
  if (all?.length !== sizeBytes) return null;
  let at = 0;
  const values: [string, Buffer][] = [];
  for (const { key, length, sum } of heads) {
    const value = all.subarray(at, (at += length));
    if (checksum(key, value) !== sum) return null;
    values.push([key, value]);
  }
  return values;
}

/** What a compressor makes of bytes that cannot be made fewer: one block with all of them. */
function rawFrame(original: Uint8Array): Buffer {
  const at = RAW_FRAME.length;
  const frame = Buffer.allocUnsafe(at + 4 + original.length);
  RAW_FRAME.copy(frame);
  frame.writeUInt8(original.length, at);
  frame.writeUIntLE(original.length * 8 + LAST_RAW, at + 1, 3);
  frame.set(original, at + 4);
  return frame;
}

function checksum(key: string, original: Uint8Array): number {
  return crc32c(Buffer.from(key), NUL, original);
}

/** Null: it is not a row of Zstandard frames, or of more bytes than that. */
function unpack(payload: Buffer, length: number): Buffer | null {
  try {
    // A buffer of the right size: of the default size it would be a hundred times a small record.
    return zstdDecompressSync(payload, {
      maxOutputLength: Math.max(1, length),
      chunkSize: Math.max(LEAST_CHUNK_BYTES, length + 1),
    });
  } catch {
    return null;
  }
}
