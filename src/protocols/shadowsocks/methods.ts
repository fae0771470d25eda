/** Ciphers by name, and keys from passwords (SIP004, SIP022, SIP023). */
import { createHash, hkdfSync } from "node:crypto";
import { blake3 } from "@noble/hashes/blake3.js";
import { ConfigError } from "#core/errors.ts";
import type { WireCipher } from "#core/wire-details.ts";
import type { AeadName } from "#protocols/crypto/aead.ts";
import type { StreamCipherName } from "#protocols/crypto/stream-cipher.ts";

/**
 * `plain` sends everything in clear; `stream` hides it and protects it against no change; `2022` is SIP022; `sip004` the
 * AEAD ciphers before it.
 */
export type Edition = "plain" | "stream" | "sip004" | "2022";

export interface Method {
  readonly name: string;
  readonly edition: Edition;
  readonly aead: AeadName;
  /** Size of a key and, as both AEAD editions have it, of a salt. */
  readonly keyBytes: number;
  /** Of the edition `stream` alone: its cipher, in place of `aead`. */
  readonly stream?: StreamCipherName;
}

const stream = (name: StreamCipherName, keyBytes: number): Method => ({
  name,
  edition: "stream",
  aead: "aes-128-gcm",
  keyBytes,
  stream: name,
});

const METHODS: readonly Method[] = [
  { name: "none", edition: "plain", aead: "aes-128-gcm", keyBytes: 0 },
  { name: "aes-128-gcm", edition: "sip004", aead: "aes-128-gcm", keyBytes: 16 },
  { name: "aes-192-gcm", edition: "sip004", aead: "aes-192-gcm", keyBytes: 24 },
  { name: "aes-256-gcm", edition: "sip004", aead: "aes-256-gcm", keyBytes: 32 },
  { name: "chacha20-ietf-poly1305", edition: "sip004", aead: "chacha20-poly1305", keyBytes: 32 },
  { name: "xchacha20-ietf-poly1305", edition: "sip004", aead: "xchacha20-poly1305", keyBytes: 32 },
  { name: "2022-blake3-aes-128-gcm", edition: "2022", aead: "aes-128-gcm", keyBytes: 16 },
  { name: "2022-blake3-aes-256-gcm", edition: "2022", aead: "aes-256-gcm", keyBytes: 32 },
  { name: "2022-blake3-chacha20-poly1305", edition: "2022", aead: "chacha20-poly1305", keyBytes: 32 },
  stream("aes-128-cfb", 16),
  stream("aes-192-cfb", 24),
  stream("aes-256-cfb", 32),
  stream("aes-128-ctr", 16),
  stream("aes-192-ctr", 24),
  stream("aes-256-ctr", 32),
  stream("rc4-md5", 16),
  stream("chacha20", 32),
  stream("chacha20-ietf", 32),
  stream("xchacha20", 32),
];

export const METHOD_NAMES: readonly string[] = METHODS.map((method) => method.name);

const BY_NAME: ReadonlyMap<string, Method> = new Map(METHODS.map((method) => [method.name, method]));

const ALIASES: Readonly<Record<string, string>> = {
  plain: "none",
  dummy: "none",
  "chacha20-poly1305": "chacha20-ietf-poly1305",
  "xchacha20-poly1305": "xchacha20-ietf-poly1305",
  aead_aes_128_gcm: "aes-128-gcm",
  aead_aes_192_gcm: "aes-192-gcm",
  aead_aes_256_gcm: "aes-256-gcm",
  aead_chacha20_poly1305: "chacha20-ietf-poly1305",
};

/** Old links write AEAD_AES_128_GCM and the like. Null for a name that is no cipher of ours. */
export function findMethod(name: string): Method | null {
  const lower = name.toLowerCase();
  return BY_NAME.get(ALIASES[lower] ?? lower) ?? null;
}

/** EVP_BytesToKey with MD5, no salt, one round: D1 = MD5(pw), D2 = MD5(D1 pw) … up to the key's size. */
export function masterKey(method: Method, password: string): Buffer {
  const secret = Buffer.from(password);
  let last = Buffer.alloc(0);
  const parts: Buffer[] = [];
  for (let size = 0; size < method.keyBytes; size += last.length) {
    last = createHash("md5").update(last).update(secret).digest();
    parts.push(last);
  }
  return Buffer.concat(parts).subarray(0, method.keyBytes);
}

/** The key of one direction of one connection (or of one packet) of the older edition. */
export function sip004Subkey(master: Uint8Array, salt: Uint8Array): Buffer {
  return Buffer.from(hkdfSync("sha1", master, salt, "ss-subkey", master.length));
}

/** Raw keys of a 2022 password, `identity:…:user`: server keys first, the user's own last. Throws `ConfigError`. */
export function preSharedKeys(method: Method, password: string): readonly Buffer[] {
  const keys = password.split(":").map((part) => preSharedKey(method, part));
  if (keys.length > 1 && method.aead === "chacha20-poly1305")
    throw new ConfigError(`${method.name} takes one key: identity headers exist for the AES methods only`);
  return keys;
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

export function preSharedKey(method: Method, text: string): Buffer {
  const key = BASE64.test(text) ? Buffer.from(text, "base64") : Buffer.alloc(0);
  if (key.length !== method.keyBytes)
    throw new ConfigError(
      `${method.name} needs a key of ${method.keyBytes} bytes as base64 (openssl rand -base64 ${method.keyBytes})`,
    );
  return key;
}

/** SIP022 session subkey; `salt` is that of the stream, or the session id of a UDP session. */
export function sessionSubkey(psk: Uint8Array, salt: Uint8Array): Buffer {
  return derive("shadowsocks 2022 session subkey", psk, salt);
}

/** SIP023 identity subkey. */
export function identitySubkey(psk: Uint8Array, salt: Uint8Array): Buffer {
  return derive("shadowsocks 2022 identity subkey", psk, salt);
}

/** Hashes that have taken in their context, by that and the size of the key: half of the work. */
const derivations = new Map<string, ReturnType<typeof blake3.create>>();

function derive(context: string, psk: Uint8Array, salt: Uint8Array): Buffer {
  const name = `${psk.length} ${context}`;
  const known = derivations.get(name);
  const begun = known ?? blake3.create({ context: Buffer.from(context), dkLen: psk.length });
  if (known === undefined) derivations.set(name, begun);
  return Buffer.from(begun.clone().update(psk).update(salt).digest());
}

/** By what an identity header names the next key: the first 16 bytes of its BLAKE3 hash. */
export function keyName(psk: Uint8Array): Buffer {
  return Buffer.from(blake3(psk, { dkLen: 16 }));
}

/** What a worker calls it, to which only methods go that it has. */
export function wireCipherOf({ aead }: Method): WireCipher {
  return aead as WireCipher;
}

/** Of a name that the options let through; throws a RangeError for any other. */
export function methodOf(name: string): Method {
  const method = findMethod(name);
  if (method === null) throw new RangeError(`not a cipher: ${name}`);
  return method;
}
