/** Keys of a server of Encrypted ClientHello as files have them, and fresh ones. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { ConfigError, ProtocolError } from "#core/errors.ts";
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
  try {
    return readPairs(pem).map(readKey);
  } catch (cause) {
    throw new ConfigError(
      `${where}: expected a PEM block ECH KEYS with X25519 keys and their configurations (weir generate ech-keypair NAME)`,
      { cause },
    );
  }
}

/** What clients are given of such keys: an ECHConfigList. Throws `ProtocolError` where they cannot be read. */
export function configsOfKeys(pem: string): Buffer {
  return encodeEchConfigs(readPairs(pem).map(({ config }) => config));
}

interface WrittenKey {
  readonly key: Buffer;
  readonly config: Buffer;
}

function readPairs(pem: string): WrittenKey[] {
  const body = PEM.exec(pem)?.[1];
  if (body === undefined) throw new ProtocolError("no PEM block ECH KEYS");
  const reader = new WireReader(Buffer.from(body, "base64"), "ECH KEYS");
  const pairs: WrittenKey[] = [];
  while (reader.left > 0 && pairs.length <= MAX_KEYS)
    pairs.push({ key: reader.vector16(), config: reader.vector16() });
  if (pairs.length === 0 || pairs.length > MAX_KEYS) throw new ProtocolError(`${pairs.length} ECH keys`);
  return pairs;
}

function readKey({ key, config: raw }: WrittenKey): EchKey {
  const [config] = readEchConfigs(vector16(raw));
  if (key.length !== KEY_BYTES || config === undefined) throw new ProtocolError("a key that cannot be used");
  const privateKey = x25519PrivateKey(key);
  if (!x25519PublicBytes(privateKey).equals(config.publicKey))
    throw new ProtocolError("a key that is not the configuration's");
  return { config, privateKey };
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
