/** EncryptedExtensions (RFC 8446 §4.3.1), held against what was offered. */
import { TlsFault } from "./alerts.ts";
import { EXTENSION, readExtensions, readProtocols, type Extensions } from "./extensions.ts";
import { readNumber } from "./hello-messages.ts";
import type { Offer } from "./offered-hello.ts";
import { WireReader } from "./wire.ts";

export interface Agreement {
  /** The protocol that both sides agreed on (ALPN); null: none. */
  readonly alpn: string | null;
  /** Content of one record that the server takes (RFC 8449); null: it set no limit. */
  readonly mostContent: number | null;
  /** The extension by which the server wants our application settings; null: it does not. */
  readonly applicationSettings: number | null;
  /** Everything, for those who offered more. */
  readonly extensions: Extensions;
}

/** Answers that may stand here at all. */
const ALLOWED = new Set<number>([
  EXTENSION.serverName,
  EXTENSION.supportedGroups,
  EXTENSION.alpn,
  EXTENSION.recordSizeLimit,
  EXTENSION.quicTransportParameters,
  EXTENSION.oldApplicationSettings,
  EXTENSION.applicationSettings,
  EXTENSION.encryptedClientHello,
]);
const LEAST_RECORD_LIMIT = 64;
/** With the content's type. */
const MOST_RECORD_LIMIT = 2 ** 14 + 1;

/** Throws `TlsFault`. */
export function readEncryptedExtensions(body: Buffer, offer: Offer): Agreement {
  const reader = new WireReader(body, "EncryptedExtensions");
  const extensions = readExtensions(reader, "EncryptedExtensions");
  reader.end();
  for (const type of extensions.keys()) {
    if (!offer.extensions.has(type))
      throw new TlsFault("unsupported_extension", `EncryptedExtensions: ${type} was not offered`);
    if (!ALLOWED.has(type)) throw new TlsFault("illegal_parameter", `EncryptedExtensions: ${type}`);
  }
  const alpn = readAlpn(extensions.get(EXTENSION.alpn), offer);
  return {
    alpn,
    mostContent: readLimit(extensions.get(EXTENSION.recordSizeLimit)),
    applicationSettings: readSettings(extensions, alpn),
    extensions,
  };
}

function readAlpn(body: Buffer | undefined, offer: Offer): string | null {
  if (body === undefined) return null;
  const [name, ...more] = readProtocols(body);
  if (name === undefined || more.length > 0)
    throw new TlsFault("decode_error", "ALPN: exactly one protocol is to be chosen");
  if (!offer.protocols.includes(name))
    throw new TlsFault("illegal_parameter", "ALPN: a protocol that was not offered");
  return name;
}

function readLimit(body: Buffer | undefined): number | null {
  if (body === undefined) return null;
  const limit = readNumber(body, "record_size_limit");
  if (limit < LEAST_RECORD_LIMIT) throw new TlsFault("illegal_parameter", `record_size_limit: ${limit}`);
  return Math.min(limit, MOST_RECORD_LIMIT) - 1;
}

function readSettings(extensions: Extensions, alpn: string | null): number | null {
  const types = [EXTENSION.applicationSettings, EXTENSION.oldApplicationSettings];
  const type = types.find((one) => extensions.has(one));
  if (type === undefined) return null;
  if (alpn === null) throw new TlsFault("illegal_parameter", "application settings without ALPN");
  return type;
}
