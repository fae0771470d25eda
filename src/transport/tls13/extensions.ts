/** The list of extensions that many messages end with (RFC 8446 §4.2). */
import { TlsFault } from "./alerts.ts";
import { typedVector16, vector16, vector8, WireReader } from "./wire.ts";

export const EXTENSION = {
  serverName: 0,
  statusRequest: 5,
  supportedGroups: 10,
  signatureAlgorithms: 13,
  alpn: 16,
  padding: 21,
  compressCertificate: 27,
  recordSizeLimit: 28,
  preSharedKey: 41,
  earlyData: 42,
  supportedVersions: 43,
  cookie: 44,
  certificateAuthorities: 47,
  keyShare: 51,
  quicTransportParameters: 57,
  oldApplicationSettings: 17513,
  applicationSettings: 17613,
  echOuterExtensions: 0xfd00,
  encryptedClientHello: 65037,
} as const;

/** Bodies by type, in the order of the wire. */
export type Extensions = ReadonlyMap<number, Buffer>;

/** Reads the list at the reader's place. Throws `TlsFault`: one that stands twice is an `illegal_parameter`. */
export function readExtensions(reader: WireReader, what: string): Extensions {
  const list = new WireReader(reader.vector16(), what);
  const found = new Map<number, Buffer>();
  while (list.left > 0) {
    const type = list.u16();
    if (found.has(type)) throw new TlsFault("illegal_parameter", `${what}: extension ${type} stands twice`);
    found.set(type, list.vector16());
  }
  return found;
}

export function encodeExtension(type: number, ...body: readonly Uint8Array[]): Buffer {
  return typedVector16(type, ...body);
}

/** With the length of the whole list in front. */
export function encodeExtensions(extensions: Extensions): Buffer {
  return vector16(...[...extensions].map(([type, body]) => encodeExtension(type, body)));
}

/** Protocols of an ALPN extension (RFC 7301 §3.1). Throws `TlsFault`. */
export function readProtocols(body: Buffer): string[] {
  const reader = new WireReader(body, "ALPN");
  const list = new WireReader(reader.vector16(2), "ALPN");
  reader.end();
  const names: string[] = [];
  while (list.left > 0) names.push(list.vector8(1).toString("latin1"));
  return names;
}

export function encodeProtocols(names: readonly string[]): Buffer {
  return vector16(...names.map((name) => vector8(Buffer.from(name, "latin1"))));
}
