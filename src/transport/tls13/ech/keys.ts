/** Keys of a server of Encrypted ClientHello as files have them, and fresh ones. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { ConfigError } from "#core/errors.ts";
import { x25519PrivateKey, x25519PublicBytes } from "#transport/tls13/key-exchange.ts";
import { vector16, WireReader } from "#transport/tls13/wire.ts";
import { type EchConfig, encodeEchConfig, encodeEchConfigs, readEchConfigs } from "./config.ts";

const PEM = /-----BEGIN ECH KEYS-----([A-Za-z0-9+/=\s]+)-----END ECH KEYS-----/;
const KEY_BYTES = 32;
const MAX_KEYS = 16;
const LINE = 64;

export interface EchKey {
  readonly config: EchConfig;
  readonly privateKey: KeyObject;
}

/** The PEM block `ECH KEYS`: for each key KEY(2+32) CONFIG(2+n), as other programs write it. Throws `ConfigError`. */
export function parseEchKeys(pem: string, where: string): readonly EchKey[] {
  const expected = "expected a PEM block ECH KEYS (weir generate ech-keypair NAME)";
  const body = PEM.exec(pem)?.[1];
  if (body === undefined) throw new ConfigError(`${where}: ${expected}`);
  try {
    const keys = readKeys(Buffer.from(body, "base64"));
    if (keys.length > 0) return keys;
  } catch (cause) {
    throw new ConfigError(`${where}: ${expected}`, { cause });
  }
  throw new ConfigError(`${where}: no key with a configuration that can be used; ${expected}`);
}

function readKeys(bytes: Buffer): EchKey[] {
  const reader = new WireReader(bytes, "ECH KEYS");
  const keys: EchKey[] = [];
  while (reader.left > 0) {
    const raw = reader.vector16();
    const [config] = readEchConfigs(vector16(reader.vector16()));
    if (raw.length !== KEY_BYTES || config === undefined || keys.length === MAX_KEYS)
      throw new Error("a key that cannot be used");
    const privateKey = x25519PrivateKey(raw);
    if (!x25519PublicBytes(privateKey).equals(config.publicKey)) throw new Error("they do not fit together");
    keys.push({ config, privateKey });
  }
  return keys;
}

export interface EchKeyPair {
  /** For clients and the parameter `ech` of HTTPS records: an ECHConfigList in base64. */
  readonly config: string;
  /** For the server: PEM. */
  readonly key: string;
}

/** `publicName`: what everybody may see in SNI. */
export function generateEchKeyPair(publicName: string): EchKeyPair {
  const { privateKey } = generateKeyPairSync("x25519");
  const { d = "" } = privateKey.export({ format: "jwk" });
  const id = 0;
  const config = encodeEchConfig({ id, publicKey: x25519PublicBytes(privateKey), publicName });
  const body = Buffer.concat([vector16(Buffer.from(d, "base64url")), vector16(config)]).toString("base64");
  const lines = body.match(new RegExp(`.{1,${LINE}}`, "g")) ?? [];
  return {
    config: encodeEchConfigs([config]).toString("base64"),
    key: `-----BEGIN ECH KEYS-----\n${lines.join("\n")}\n-----END ECH KEYS-----\n`,
  };
}
