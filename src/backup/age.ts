/**
 * Files of age (age-encryption.org/v1, by the specification at c2sp.org/age) for X25519 recipients: who makes one needs no
 * secret, and the program `age` opens it with the key of a recipient.
 *
 * Layout: `age-encryption.org/v1\n` | stanzas | `--- ` MAC `\n` | nonce (16) | chunks of 64 KiB, each with its tag (16).
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";
import { decodeBech32 } from "#lib/bech32.ts";
import { BackupError } from "./sealing.ts";

const VERSION = "age-encryption.org/v1\n";
const MOST_HEADER_BYTES = 64 * 1024;
const FILE_KEY_BYTES = 16;
const KEY_BYTES = 32;
const TAG_BYTES = 16;
const NONCE_BYTES = 16;
const CHUNK_BYTES = 64 * 1024;
const CIPHER = "chacha20-poly1305";
const ZERO_NONCE = Buffer.alloc(12);
const INFO = "age-encryption.org/v1/X25519";

/** Null: it is no `age1…` of an X25519 key. */
export function readRecipient(text: string): Buffer | null {
  const key = decodeBech32(text, "age");
  return key?.length === KEY_BYTES ? key : null;
}

/** The keys of a file as age-keygen writes it. Null: a line is neither empty, a comment, nor a key. */
export function readIdentities(text: string): readonly Buffer[] | null {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "" && !line.startsWith("#"));
  const keys = lines.map((line) => decodeBech32(line.trim(), "age-secret-key-"));
  return keys.length > 0 && keys.every((key) => key?.length === KEY_BYTES)
    ? keys.filter((key) => key !== null)
    : null;
}

/** Of a file, or what it begins with. */
export function isAge(file: Buffer): boolean {
  return file.subarray(0, VERSION.length).equals(Buffer.from(VERSION));
}

export function sealAge(contents: Buffer, recipients: readonly Buffer[]): Buffer {
  const fileKey = randomBytes(FILE_KEY_BYTES);
  const header = `${VERSION}${recipients.map((recipient) => stanza(fileKey, recipient)).join("")}---`;
  const nonce = randomBytes(NONCE_BYTES);
  const key = derived(fileKey, nonce, "payload");
  const chunks: Buffer[] = [];
  for (let at = 0; at === 0 || at < contents.length; at += CHUNK_BYTES) {
    const isLast = at + CHUNK_BYTES >= contents.length;
    chunks.push(sealed(key, chunkNonce(at / CHUNK_BYTES, isLast), contents.subarray(at, at + CHUNK_BYTES)));
  }
  const head = Buffer.from(`${header} ${base64(macOf(fileKey, header))}\n`);
  return Buffer.concat([head, nonce, ...chunks]);
}

/** Throws `BackupError`: for other recipients, damaged, cut off. */
export function openAge(file: Buffer, identities: readonly Buffer[]): Buffer {
  const { header, mac, stanzas, end } = headerOf(file);
  const fileKey = fileKeyOf(stanzas, identities);
  if (fileKey === null) throw new BackupError("it is encrypted for recipients whose key is not given");
  if (!timingSafeEqual(Buffer.from(mac), Buffer.from(base64(macOf(fileKey, header)))))
    throw new BackupError("it is damaged: its first lines are not as they were");
  const nonce = file.subarray(end, end + NONCE_BYTES);
  const key = derived(fileKey, nonce, "payload");
  const body = file.subarray(end + NONCE_BYTES);
  const step = CHUNK_BYTES + TAG_BYTES;
  const chunks: Buffer[] = [];
  for (let at = 0; at === 0 || at < body.length; at += step) {
    const chunk = opened(key, chunkNonce(at / step, at + step >= body.length), body.subarray(at, at + step));
    if (chunk === null) throw new BackupError("it is damaged or cut off");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function stanza(fileKey: Buffer, recipient: Buffer): string {
  const { privateKey, publicKey } = generateKeyPairSync("x25519");
  const share = publicKey.export({ format: "raw-public" });
  const shared = diffieHellman({ privateKey, publicKey: publicOf(recipient) });
  const key = derived(shared, Buffer.concat([share, recipient]), INFO);
  return `-> X25519 ${base64(share)}\n${base64(sealed(key, ZERO_NONCE, fileKey))}\n`;
}

interface Stanza {
  readonly words: readonly string[];
  readonly body: Buffer;
}

function headerOf(file: Buffer) {
  const text = file.subarray(0, MOST_HEADER_BYTES).toString("latin1");
  const end = /\n---[ ]([A-Za-z0-9+/]{43})\n/.exec(text);
  if (!isAge(file) || end === null) throw new BackupError("it is cut off or damaged in its first lines");
  const stanzas = text
    .slice(VERSION.length, end.index + 1)
    .split(/^-> /m)
    .slice(1)
    .map((each): Stanza => {
      const [first = "", ...lines] = each.trimEnd().split("\n");
      return { words: first.split(" "), body: Buffer.from(lines.join(""), "base64") };
    });
  return {
    header: text.slice(0, end.index + "\n---".length),
    mac: end[1] ?? "", // of 43 letters, compared as text: its last one has bits without meaning
    stanzas,
    end: end.index + end[0].length,
  };
}

/** Stanzas of other kinds are passed over. */
function fileKeyOf(stanzas: readonly Stanza[], identities: readonly Buffer[]): Buffer | null {
  for (const raw of identities) {
    const privateKey = createPrivateKey({
      key: raw,
      format: "raw-private",
      asymmetricKeyType: "x25519",
    });
    const own = createPublicKey(privateKey).export({ format: "raw-public" });
    for (const { words, body } of stanzas) {
      const share = Buffer.from(words[1] ?? "", "base64");
      if (words[0] !== "X25519" || share.length !== KEY_BYTES || body.length !== FILE_KEY_BYTES + TAG_BYTES)
        continue;
      const shared = agreed(privateKey, share);
      if (shared === null) continue;
      const key = derived(shared, Buffer.concat([share, own]), INFO);
      const fileKey = opened(key, ZERO_NONCE, body);
      if (fileKey !== null) return fileKey;
    }
  }
  return null;
}

/** Null: the share is a point of low order. */
function agreed(privateKey: KeyObject, share: Buffer): Buffer | null {
  try {
    return diffieHellman({ privateKey, publicKey: publicOf(share) });
  } catch {
    return null;
  }
}

const publicOf = (raw: Buffer): KeyObject =>
  createPublicKey({ key: raw, format: "raw-public", asymmetricKeyType: "x25519" });

const base64 = (bytes: Buffer): string => bytes.toString("base64").replaceAll("=", "");

const derived = (key: Buffer, salt: Buffer, info: string): Buffer =>
  Buffer.from(hkdfSync("sha256", key, salt, info, KEY_BYTES));

const macOf = (fileKey: Buffer, header: string): Buffer =>
  createHmac("sha256", derived(fileKey, Buffer.alloc(0), "header"))
    .update(header, "latin1")
    .digest();

/** COUNTER(11, big endian) LAST(1) */
function chunkNonce(counter: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(counter, 5, 6);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

function sealed(key: Buffer, nonce: Buffer, plain: Buffer): Buffer {
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Null: another key or nonce, or it was changed. */
function opened(key: Buffer, nonce: Buffer, bytes: Buffer): Buffer | null {
  if (bytes.length < TAG_BYTES) return null;
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]);
  } catch {
    return null;
  }
}
