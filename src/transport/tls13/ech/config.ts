/** ECHConfig: what a server says of its Encrypted ClientHello, in DNS or in a file (RFC 9849 §4). */
import { ConfigError } from "#core/errors.ts";
import { EXTENSION, readExtensions } from "#transport/tls13/extensions.ts";
import { numbers16, u16, vector16, vector8, WireReader } from "#transport/tls13/wire.ts";
import { hpkeAead, KDF_SHA256, KEM_X25519 } from "./hpke.ts";

const VERSION = EXTENSION.encryptedClientHello;
const PUBLIC_KEY_BYTES = 32;
/** Extensions of these numbers must be understood, and none is. */
const MANDATORY = 0x8000;
const MAX_NAME = 253;
/** Letters, digits and hyphens, two labels at least: what can stand in SNI, and is no address. */
const HOST_NAME = /^(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))+$/i;
const ADDRESS_END = /\.(\d+|0x[0-9a-f]*)$/i;

export interface EchConfig {
  /** All of it, from its version on: a part of what is sealed. */
  readonly raw: Buffer;
  readonly id: number;
  /** X25519, 32 bytes. */
  readonly publicKey: Buffer;
  /** The first AEAD that is built, by its HPKE number. */
  readonly aead: number;
  /** AEADs that the server takes, those that are built. */
  readonly aeads: readonly number[];
  /** The longest name that the server expects, for padding; 0: it does not say. */
  readonly maxNameBytes: number;
  /** What everybody may see in SNI. */
  readonly publicName: string;
}

/**
 * The configurations of a list that can be used, the server's favourite first. Throws `TlsFault` where the list is
 * malformed.
 */
export function readEchConfigs(list: Buffer): EchConfig[] {
  const reader = new WireReader(list, "ECHConfigList");
  const configs = new WireReader(reader.vector16(4), "ECHConfigList");
  reader.end();
  const found: EchConfig[] = [];
  while (configs.left > 0) {
    const version = configs.u16();
    const body = configs.vector16();
    const config = version === VERSION ? readConfig(body) : null;
    if (config !== null) found.push(config);
  }
  return found;
}

/** Null: it asks for what is not built, or has a name or key that cannot be used. */
function readConfig(body: Buffer): EchConfig | null {
  const reader = new WireReader(body, "ECHConfig");
  const id = reader.u8();
  const kem = reader.u16();
  const publicKey = reader.vector16(1);
  const suites = readSuites(reader);
  const maxNameBytes = reader.u8();
  const publicName = reader.vector8(1).toString("latin1");
  const extensions = readExtensions(reader, "ECHConfig");
  reader.end();
  const aeads = suites.filter(({ kdf, aead }) => kdf === KDF_SHA256 && hpkeAead(aead) !== null);
  const [first] = aeads;
  if (kem !== KEM_X25519 || publicKey.length !== PUBLIC_KEY_BYTES || first === undefined) return null;
  if (!isPublicName(publicName)) return null;
  for (const type of extensions.keys()) if ((type & MANDATORY) !== 0) return null;
  const raw = Buffer.concat([u16(VERSION), vector16(body)]);
  return {
    raw,
    id,
    publicKey,
    aead: first.aead,
    aeads: aeads.map(({ aead }) => aead),
    maxNameBytes,
    publicName,
  };
}

function readSuites(reader: WireReader): { readonly kdf: number; readonly aead: number }[] {
  const list = new WireReader(reader.vector16(4), "ECHConfig");
  const suites: { kdf: number; aead: number }[] = [];
  while (list.left > 0) suites.push({ kdf: list.u16(), aead: list.u16() });
  return suites;
}

/** A name that can stand for the server in public: no address, and no single label (RFC 9849 §6.1.7). */
export function isPublicName(name: string): boolean {
  return name.length <= MAX_NAME && HOST_NAME.test(name) && !ADDRESS_END.test(name);
}

export interface EchConfigFields {
  readonly id: number;
  readonly publicKey: Buffer;
  readonly publicName: string;
}

/** One ECHConfig with every AEAD that is built. */
export function encodeEchConfig({ id, publicKey, publicName }: EchConfigFields): Buffer {
  const body = vector16(
    Buffer.of(id),
    u16(KEM_X25519),
    vector16(publicKey),
    vector16(numbers16([KDF_SHA256, 1, KDF_SHA256, 2, KDF_SHA256, 3])),
    Buffer.of(0),
    vector8(Buffer.from(publicName, "latin1")),
    vector16(),
  );
  return Buffer.concat([u16(VERSION), body]);
}

/** As clients and HTTPS records have it. */
export function encodeEchConfigs(configs: readonly Buffer[]): Buffer {
  return vector16(...configs);
}

/** The list of `ech-opts.config`. Throws `ConfigError` where it is no base64 of a list with a usable configuration. */
export function parseEchConfigText(text: string, where: string): Buffer {
  const letters = text.replaceAll(/\s/g, "").replaceAll("-", "+").replaceAll("_", "/");
  const expected = "expected an ECHConfigList in base64, as the parameter ech of an HTTPS record has it";
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(letters)) throw new ConfigError(`${where}: ${expected}`);
  const list = Buffer.from(letters, "base64");
  let configs: readonly EchConfig[];
  try {
    configs = readEchConfigs(list);
  } catch (cause) {
    throw new ConfigError(`${where}: ${expected}`, { cause });
  }
  if (configs.length === 0)
    throw new ConfigError(
      `${where}: no configuration in it can be used: one of version fe0d with X25519, HKDF-SHA256 and a public host name is needed`,
    );
  return list;
}
