/**
 * A backup as a file. Layout: `weir-backup 1 ` JSON `\n` | body | SHA-256 of all before (32).
 * The JSON says the length of the body and how it is sealed. The body is Zstandard of the contents; sealed, it is
 * AES-256-GCM of that with its tag (16) behind, the first line being the additional data, and the key scrypt of a
 * passphrase (RFC 7914).
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes, scrypt } from "node:crypto";
import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress } from "node:zlib";
import * as z from "zod";
import { errnoOf } from "#core/errors.ts";

/** This file is no backup, or not a whole one; the message says of it what is wrong. */
export class BackupError extends Error {
  override readonly name = "BackupError";
}

/** What every backup begins with. */
export const MAGIC = "weir-backup 1 ";
/** The same of a later form. */
const OTHER_FORM = /^weir-backup (\d{1,9}) /;
const MOST_HEAD_BYTES = 1024;
const SUM_BYTES = 32;
const TAG_BYTES = 16;
const NONCE_BYTES = 12;
const KEY_BYTES = 32;
/** Of the contents. */
const MOST_BYTES = 1024 * 1024 * 1024;

/** 64 MiB for each attempt at a passphrase. */
const COST = { N: 2 ** 16, r: 8, p: 1 };
/** A file from elsewhere must not take all memory. */
const MOST_KEY_MEMORY = 512 * 1024 * 1024;

const sealedShape = z.object({
  kdf: z.literal("scrypt"),
  N: z
    .int()
    .min(2)
    .max(2 ** 20),
  r: z.int().min(1).max(32),
  p: z.int().min(1).max(16),
  salt: z.base64(),
  cipher: z.literal("aes-256-gcm"),
  nonce: z.base64(),
});
const headShape = z.object({ bytes: z.int().min(0), sealed: sealedShape.nullable() });
type Sealed = z.output<typeof sealedShape>;

const deriveKey = promisify<string, Buffer, number, object, Buffer>(scrypt);
const compress = promisify<Buffer, object, Buffer>(zstdCompress);
const decompress = promisify<Buffer, object, Buffer>(zstdDecompress);

/** `passphrase` null: every holder of the file can read it. */
export async function sealBackup(contents: Buffer, passphrase: string | null): Promise<Buffer> {
  const packed = await compress(contents, { params: { [constants.ZSTD_c_checksumFlag]: 1 } });
  if (passphrase === null) return framed(headLine({ bytes: packed.length, sealed: null }), packed);
  const nonce = randomBytes(NONCE_BYTES);
  const salt = randomBytes(16);
  const sealed: Sealed = {
    kdf: "scrypt",
    ...COST,
    salt: salt.toString("base64"),
    cipher: "aes-256-gcm",
    nonce: nonce.toString("base64"),
  };
  const head = headLine({ bytes: packed.length + TAG_BYTES, sealed });
  const cipher = createCipheriv("aes-256-gcm", await keyOf(passphrase, sealed), nonce).setAAD(head);
  return framed(head, Buffer.concat([cipher.update(packed), cipher.final(), cipher.getAuthTag()]));
}

/** The contents. Rejects with `BackupError`: no backup, damaged, cut off, another passphrase, or more than `mostBytes`. */
export async function openBackup(
  file: Buffer,
  passphrase: string | null,
  mostBytes = MOST_BYTES,
): Promise<Buffer> {
  const { head, sealed, body } = takenApart(file);
  if (sealed === null) return unpacked(body, mostBytes);
  if (passphrase === null) throw new BackupError("it is encrypted; it takes its passphrase");
  const nonce = Buffer.from(sealed.nonce, "base64");
  const tag = body.subarray(-TAG_BYTES);
  if (nonce.length !== NONCE_BYTES || tag.length !== TAG_BYTES)
    throw new BackupError("its first line cannot be read");
  const key = await keyOf(passphrase, sealed);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(head).setAuthTag(tag);
  const packed = decipher.update(body.subarray(0, -TAG_BYTES));
  try {
    decipher.final();
  } catch (error) {
    throw new BackupError("the passphrase is not the one that it was encrypted with", { cause: error });
  }
  return unpacked(packed, mostBytes);
}

function headLine(head: z.input<typeof headShape>): Buffer {
  return Buffer.from(`${MAGIC}${JSON.stringify(head)}\n`);
}

function framed(head: Buffer, body: Buffer): Buffer {
  const sum = createHash("sha256").update(head).update(body).digest();
  return Buffer.concat([head, body, sum]);
}

function takenApart(file: Buffer) {
  const begin = file.subarray(0, MOST_HEAD_BYTES);
  if (!begin.subarray(0, MAGIC.length).equals(Buffer.from(MAGIC).subarray(0, begin.length))) {
    const form = OTHER_FORM.exec(begin.toString("latin1"))?.[1];
    if (form !== undefined)
      throw new BackupError(`it has form ${form}, and this version reads form 1; it takes a later weir`);
    throw new BackupError("it is no backup of weir");
  }
  const end = begin.indexOf("\n");
  if (end < 0) throw new BackupError("it is cut off in its first line");
  const head = file.subarray(0, end + 1);
  const { bytes, sealed } = headOf(head);
  const body = file.subarray(head.length, head.length + bytes);
  const sum = file.subarray(head.length + bytes);
  if (sum.length < SUM_BYTES)
    throw new BackupError(
      `it is cut off: ${file.length} of ${head.length + bytes + SUM_BYTES} bytes are there`,
    );
  if (!createHash("sha256").update(head).update(body).digest().equals(sum))
    throw new BackupError("it is damaged: its checksum is another one");
  return { head, sealed, body };
}

function headOf(line: Buffer): z.output<typeof headShape> {
  try {
    return headShape.parse(JSON.parse(line.subarray(MAGIC.length).toString()));
  } catch (error) {
    throw new BackupError("it is damaged: its first line cannot be read", { cause: error });
  }
}

async function keyOf(passphrase: string, { N, r, p, salt }: Sealed): Promise<Buffer> {
  const maxmem = MOST_KEY_MEMORY + 1024 * 1024;
  if (128 * N * r > MOST_KEY_MEMORY) throw new BackupError("its key takes more than 512 MiB to derive");
  return deriveKey(passphrase, Buffer.from(salt, "base64"), KEY_BYTES, { N, r, p, maxmem });
}

async function unpacked(packed: Buffer, mostBytes: number): Promise<Buffer> {
  try {
    return await decompress(packed, { maxOutputLength: mostBytes });
  } catch (error) {
    if (errnoOf(error) === "ERR_BUFFER_TOO_LARGE")
      throw new BackupError(`it holds more than ${Math.round(mostBytes / 1024 / 1024)} MiB`, {
        cause: error,
      });
    throw new BackupError("it is damaged: it cannot be decompressed", { cause: error });
  }
}
