/** What a ClientHello is put together of: a template, and what was drawn for it. */
import { encodeExtension, encodeProtocols, EXTENSION } from "#transport/tls13/extensions.ts";
import { MESSAGE } from "#transport/tls13/handshake-messages.ts";
import type { KeyShare } from "#transport/tls13/key-exchange.ts";
import type { Retry } from "#transport/tls13/offered-hello.ts";
import { encodeSession } from "#transport/tls13/pre-shared-key.ts";
import type { Session } from "#transport/tls13/sessions.ts";
import type { ExtensionTemplate, HelloTemplate, Value } from "./template.ts";

const NOTHING = Buffer.alloc(0);
/** Of the random and of the session id. */
export const RANDOM_BYTES = 32;
const LEGACY_VERSION = 0x0303;

/** What is drawn once for a connection, and stays the same behind a HelloRetryRequest. */
export interface Drawn {
  readonly random: Buffer;
  readonly sessionId: Buffer;
  readonly greaseSuite: number;
  readonly greaseGroup: number;
  readonly greaseVersion: number;
  readonly greaseExtensions: readonly [number, number];
  readonly order: readonly ExtensionTemplate[];
  /** The whole extension; empty: none. */
  readonly ech: Buffer;
}

interface Asked {
  readonly serverName: string;
  readonly protocols: readonly string[] | null;
  readonly session: Session | null;
}

/** What of it differs from others. */
export interface HelloParts {
  readonly drawn: Drawn;
  readonly shares: readonly KeyShare[];
  readonly retry: Retry | null;
}

// TYPE(1) LENGTH(3) VERSION(2) RANDOM(32) SESSION_ID(1+32) SUITES(2+2n) COMPRESSION(1+1) EXTENSIONS(2+n)
const HEADER_BYTES = 4;
const RANDOM_AT = HEADER_BYTES + 2;
const SESSION_ID_AT = RANDOM_AT + RANDOM_BYTES + 1;
const SUITES_AT = SESSION_ID_AT + RANDOM_BYTES + 2;

/** The whole message. */
export function encodeHello({ suites }: HelloTemplate, asked: Asked, parts: HelloParts): Buffer {
  const { drawn } = parts;
  const extensionsAt = SUITES_AT + 2 * suites.length + 4;
  const extensions = encodeAll(asked, parts, extensionsAt);
  let size = extensionsAt;
  for (const one of extensions) size += one.length;
  const message = Buffer.allocUnsafe(size);
  message[0] = MESSAGE.clientHello;
  message.writeUIntBE(size - HEADER_BYTES, 1, 3);
  message.writeUInt16BE(LEGACY_VERSION, HEADER_BYTES);
  message.set(drawn.random, RANDOM_AT);
  message[SESSION_ID_AT - 1] = RANDOM_BYTES;
  message.set(drawn.sessionId, SESSION_ID_AT);
  message.writeUInt16BE(2 * suites.length, SUITES_AT - 2);
  let at = writeValues(message, SUITES_AT, suites, drawn.greaseSuite);
  at = message.writeUInt16BE(0x0100, at); // one compression, which is none
  at = message.writeUInt16BE(size - extensionsAt, at);
  for (const one of extensions) {
    message.set(one, at);
    at += one.length;
  }
  return message;
}

/** In the order of the wire. `at`: of what is in front of them in the message. */
function encodeAll(asked: Asked, parts: HelloParts, at: number): readonly Buffer[] {
  const { drawn } = parts;
  const encoded: Buffer[] = [];
  let [greases, paddingAt] = [0, -1];
  for (const extension of drawn.order) {
    if (extension.kind === "padding") paddingAt = encoded.length;
    if (extension.kind === "grease") encoded.push(encodeGrease(drawn, greases++));
    else encoded.push(encodeOne(extension, asked, parts));
  }
  if (asked.session !== null) encoded.push(encodeSession(asked.session, Date.now()));
  if (paddingAt >= 0) encoded[paddingAt] = encodePadding(at, encoded);
  return encoded;
}

function writeValues(out: Buffer, from: number, values: readonly Value[], grease: number): number {
  let at = from;
  for (const value of values) at = out.writeUInt16BE(value === "grease" ? grease : value, at);
  return at;
}

function encodeGrease({ greaseExtensions: [first, last] }: Drawn, index: number): Buffer {
  return index === 0 ? encodeExtension(first) : encodeExtension(last, Buffer.of(0));
}

/** Extensions that are the same in each hello, by what describes them. */
const kept = new WeakMap<ExtensionTemplate, Buffer>();

function keep(extension: ExtensionTemplate, encoded: Buffer): Buffer {
  kept.set(extension, encoded);
  return encoded;
}

/** Empty: the extension is left out. */
function encodeOne(
  extension: Exclude<ExtensionTemplate, { kind: "grease" }>,
  { serverName, protocols }: Asked,
  { drawn, shares, retry }: HelloParts,
): Buffer {
  switch (extension.kind) {
    case "fixed":
      return (
        kept.get(extension) ??
        keep(extension, encodeExtension(extension.type, Buffer.from(extension.body, "hex")))
      );
    case "name":
      return serverName === "" ? NOTHING : encodeName(serverName);
    case "protocols":
      if (protocols !== null) return protocols.length === 0 ? NOTHING : encodeAlpn(EXTENSION.alpn, protocols);
      return kept.get(extension) ?? keep(extension, encodeAlpn(EXTENSION.alpn, extension.names));
    case "settings":
      if (protocols !== null && !protocols.includes("h2")) return NOTHING;
      return kept.get(extension) ?? keep(extension, encodeAlpn(extension.type, ["h2"]));
    case "list":
      return encodeList(extension, drawn, retry);
    case "shares":
      return encodeShares(retry?.share ? [] : extension.groups, drawn, shares);
    case "ech":
      return drawn.ech;
    case "padding":
      return NOTHING;
  }
}

function encodeAlpn(type: number, names: readonly string[]): Buffer {
  return encodeExtension(type, encodeProtocols(names));
}

const NAME_EXTRA_BYTES = 9;

/** TYPE(2) LENGTH(2) LIST(2) TYPE(1)=0 NAME(2+n) (RFC 6066 §3). */
function encodeName(name: string): Buffer {
  const bytes = Buffer.allocUnsafe(NAME_EXTRA_BYTES + name.length);
  bytes.writeUInt16BE(EXTENSION.serverName, 0);
  bytes.writeUInt16BE(name.length + 5, 2);
  bytes.writeUInt16BE(name.length + 3, 4);
  bytes[6] = 0;
  bytes.writeUInt16BE(name.length, 7);
  bytes.write(name, NAME_EXTRA_BYTES, "latin1");
  return bytes;
}

/** A cookie goes directly behind the versions. */
function encodeList(
  extension: Extract<ExtensionTemplate, { kind: "list" }>,
  { greaseGroup, greaseVersion }: Drawn,
  retry: Retry | null,
): Buffer {
  const isVersions = extension.type === EXTENSION.supportedVersions;
  const list = kept.get(extension) ?? encodeValues(extension, isVersions ? greaseVersion : greaseGroup);
  const cookie = retry?.cookie ?? null;
  return isVersions && cookie !== null
    ? Buffer.concat([list, encodeExtension(EXTENSION.cookie, cookie)])
    : list;
}

/** Kept where nothing is drawn for it. */
function encodeValues(extension: Extract<ExtensionTemplate, { kind: "list" }>, grease: number): Buffer {
  const { type, lengthBytes, values } = extension;
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + lengthBytes + 2 * values.length);
  bytes.writeUInt16BE(type, 0);
  bytes.writeUInt16BE(bytes.length - HEADER_BYTES, 2);
  const at = bytes.writeUIntBE(2 * values.length, HEADER_BYTES, lengthBytes);
  writeValues(bytes, at, values, grease);
  return values.includes("grease") ? bytes : keep(extension, bytes);
}

/** The GREASE share first, where there is one; then ours in their order. TYPE(2) LENGTH(2) LIST(2), each GROUP(2) KEY(2+n). */
function encodeShares(groups: readonly Value[], { greaseGroup }: Drawn, shares: readonly KeyShare[]): Buffer {
  const hasGrease = groups[0] === "grease";
  let size = HEADER_BYTES + 2 + (hasGrease ? HEADER_BYTES + 1 : 0);
  for (const { share } of shares) size += HEADER_BYTES + share.length;
  const bytes = Buffer.allocUnsafe(size);
  bytes.writeUInt16BE(EXTENSION.keyShare, 0);
  bytes.writeUInt16BE(size - HEADER_BYTES, 2);
  let at = bytes.writeUInt16BE(size - HEADER_BYTES - 2, HEADER_BYTES);
  if (hasGrease) at = writeShare(bytes, at, greaseGroup, GREASE_SHARE);
  for (const { group, share } of shares) at = writeShare(bytes, at, group, share);
  return bytes;
}
const GREASE_SHARE = Buffer.of(0);

function writeShare(out: Buffer, from: number, group: number, share: Buffer): number {
  const at = out.writeUInt16BE(share.length, out.writeUInt16BE(group, from));
  out.set(share, at);
  return at + share.length;
}

const PADDED_FROM = 256;
const PADDED_TO = 512;

/** As browsers compute it: a message of 256 to 511 bytes becomes one of 512, by one byte of content at least. `at`: of what is in front of the extensions. */
function encodePadding(at: number, encoded: readonly Buffer[]): Buffer {
  const size = encoded.reduce((sum, part) => sum + part.length, at);
  if (size < PADDED_FROM || size >= PADDED_TO) return NOTHING;
  return encodeExtension(EXTENSION.padding, Buffer.alloc(Math.max(1, PADDED_TO - size - HEADER_BYTES)));
}
