/** ClientHellos from templates. */
import { randomBytes, randomInt } from "node:crypto";
import { encodeExtension, encodeProtocols, EXTENSION } from "#transport/tls13/extensions.ts";
import { encodeMessage, MESSAGE } from "#transport/tls13/handshake-messages.ts";
import { type KeyShare, openKeyShare, openX25519Share } from "#transport/tls13/key-exchange.ts";
import type { ClientHelloMessage, Retry } from "#transport/tls13/offered-hello.ts";
import { encodeSession } from "#transport/tls13/pre-shared-key.ts";
import { numbers16, typedVector16, u16, vector16, vector8 } from "#transport/tls13/wire.ts";
import type { Session } from "#transport/tls13/sessions.ts";
import { type ExtensionTemplate, type HelloTemplate, KEY_EXCHANGE_MODES, type Value } from "./template.ts";

const LEGACY_VERSION = 0x0303;
const NOTHING = Buffer.alloc(0);
/** Of the random and of the session id. */
const RANDOM_BYTES = 32;

export interface HelloOptions {
  /** For SNI; empty: none. */
  readonly serverName: string;
  /** Takes the place of the template's ALPN; null: the template's own, empty: no ALPN. */
  readonly protocols: readonly string[] | null;
  /** To be resumed; absent: none. Only for a template that `canResume`. */
  readonly session?: Session | null;
}

/** The browser says that it resumes sessions with a fresh key exchange (psk_dhe_ke, RFC 8446 §4.2.9). */
export function canResume({ extensions }: HelloTemplate): boolean {
  return extensions.includes(KEY_EXCHANGE_MODES);
}

/** What is drawn once for a connection, and stays the same behind a HelloRetryRequest. */
interface Drawn {
  readonly random: Buffer;
  readonly sessionId: Buffer;
  readonly greaseSuite: number;
  readonly greaseGroup: number;
  readonly greaseVersion: number;
  readonly greaseExtensions: readonly [number, number];
  readonly order: readonly ExtensionTemplate[];
  readonly ech: Buffer;
}

/** Throws where the template names a group that is not built. */
export function buildHello(template: HelloTemplate, options: HelloOptions): ClientHelloMessage {
  const drawn = draw(template);
  const shares = template.extensions.flatMap((one) => (one.kind === "shares" ? openShares(one.groups) : []));
  const make = (own: readonly KeyShare[], retry: Retry | null): ClientHelloMessage => {
    const session = retry?.dropsSession === true ? null : (options.session ?? null);
    return {
      message: encodeHello(template, { ...options, session }, drawn, own, retry),
      shares: own,
      again: (next) => make(next.share === null ? own : [next.share], next),
      ...(session === null ? {} : { session }),
    };
  };
  return make(shares, null);
}

function openShares(groups: readonly Value[]): KeyShare[] {
  return groups
    .filter((group) => group !== "grease")
    .map((group) => {
      const share = openKeyShare(group);
      if (share === null) throw new Error(`a template names the group ${group}, which is not built`);
      return share;
    });
}

function draw(template: HelloTemplate): Drawn {
  const first = drawGrease();
  let last = drawGrease();
  while (last === first) last = drawGrease();
  const ech = template.extensions.find((one) => one.kind === "ech") ?? null;
  const payload = ech === null ? 0 : (ech.payloads[randomInt(ech.payloads.length)] ?? 144);
  const random = randomBytes(2 * RANDOM_BYTES + 1 + payload); // a call costs more than the bytes
  return {
    random: random.subarray(0, RANDOM_BYTES),
    sessionId: random.subarray(RANDOM_BYTES, 2 * RANDOM_BYTES),
    greaseSuite: drawGrease(),
    greaseGroup: drawGrease(),
    greaseVersion: drawGrease(),
    greaseExtensions: [first, last],
    order: template.isShuffled ? shuffle(template.extensions) : template.extensions,
    ech: drawEch(ech, random.subarray(2 * RANDOM_BYTES)),
  };
}

/** 0xXaXa (RFC 8701 §2). */
function drawGrease(): number {
  return (randomInt(16) * 16 + 10) * 0x0101;
}

/** All but GREASE and padding change places. */
function shuffle(extensions: readonly ExtensionTemplate[]): ExtensionTemplate[] {
  const stays = ({ kind }: ExtensionTemplate): boolean => kind === "grease" || kind === "padding";
  const movable = extensions.filter((one) => !stays(one));
  for (let last = movable.length - 1; last > 0; last--) {
    const other = randomInt(last + 1);
    const [one, two] = [movable[last], movable[other]];
    if (one === undefined || two === undefined) continue;
    movable[last] = two;
    movable[other] = one;
  }
  let next = 0;
  return extensions.map((one) => (stays(one) ? one : (movable[next++] ?? one)));
}

/** OUTER(1)=0 KDF(2)=1 AEAD(2) CONFIG(1) ENC(2+32) PAYLOAD(2+n). `random`: configuration and payload. */
function drawEch(ech: Extract<ExtensionTemplate, { kind: "ech" }> | null, random: Buffer): Buffer {
  if (ech === null) return NOTHING;
  const aead = ech.aeads[randomInt(ech.aeads.length)] ?? 1;
  using share = openX25519Share();
  return Buffer.concat([
    Buffer.of(0),
    numbers16([1, aead]),
    random.subarray(0, 1),
    vector16(share.share),
    vector16(random.subarray(1)),
  ]);
}

function encodeHello(
  template: HelloTemplate,
  options: HelloOptions,
  drawn: Drawn,
  shares: readonly KeyShare[],
  retry: Retry | null,
): Buffer {
  const head = Buffer.concat([
    u16(LEGACY_VERSION),
    drawn.random,
    vector8(drawn.sessionId),
    vector16(numbers16(template.suites.map((one) => valueOf(one, drawn.greaseSuite)))),
    vector8(Buffer.of(0)),
  ]);
  const parts: Buffer[] = [];
  let [greases, paddingAt] = [0, -1];
  for (const extension of drawn.order) {
    if (extension.kind === "padding") paddingAt = parts.length;
    if (extension.kind === "grease") parts.push(encodeGrease(drawn, greases++));
    else parts.push(encodeOne(extension, options, drawn, shares, retry));
  }
  if (options.session) parts.push(encodeSession(options.session, Date.now()));
  if (paddingAt >= 0) parts[paddingAt] = encodePadding(head, parts);
  return encodeMessage(MESSAGE.clientHello, head, vector16(...parts));
}

function valueOf(value: Value, grease: number): number {
  return value === "grease" ? grease : value;
}

function encodeGrease({ greaseExtensions: [first, last] }: Drawn, index: number): Buffer {
  return index === 0 ? encodeExtension(first) : encodeExtension(last, Buffer.of(0));
}

/** Empty: the extension is left out. */
function encodeOne(
  extension: Exclude<ExtensionTemplate, { kind: "grease" }>,
  { serverName, protocols }: HelloOptions,
  drawn: Drawn,
  shares: readonly KeyShare[],
  retry: Retry | null,
): Buffer {
  switch (extension.kind) {
    case "fixed":
      return encodeExtension(extension.type, Buffer.from(extension.body, "hex"));
    case "name":
      return serverName === "" ? NOTHING : encodeName(serverName);
    case "protocols": {
      const names = protocols ?? extension.names;
      return names.length === 0 ? NOTHING : encodeExtension(EXTENSION.alpn, encodeProtocols(names));
    }
    case "settings":
      return protocols !== null && !protocols.includes("h2")
        ? NOTHING
        : encodeExtension(extension.type, encodeProtocols(["h2"]));
    case "list":
      return encodeList(extension, drawn, retry);
    case "shares":
      return encodeShares(retry?.share ? [] : extension.groups, drawn, shares);
    case "ech":
      return encodeExtension(EXTENSION.encryptedClientHello, drawn.ech);
    case "padding":
      return NOTHING;
  }
}

/** LIST(2) TYPE(1)=0 NAME(2+n) (RFC 6066 §3). */
function encodeName(name: string): Buffer {
  return encodeExtension(EXTENSION.serverName, vector16(Buffer.of(0), vector16(Buffer.from(name, "latin1"))));
}

/** A cookie goes directly behind the versions. */
function encodeList(
  { type, lengthBytes, values }: Extract<ExtensionTemplate, { kind: "list" }>,
  { greaseGroup, greaseVersion }: Drawn,
  retry: Retry | null,
): Buffer {
  const isVersions = type === EXTENSION.supportedVersions;
  const grease = isVersions ? greaseVersion : greaseGroup;
  const body = numbers16(values.map((one) => valueOf(one, grease)));
  const list = encodeExtension(type, lengthBytes === 1 ? vector8(body) : vector16(body));
  const cookie = retry?.cookie ?? null;
  return isVersions && cookie !== null
    ? Buffer.concat([list, encodeExtension(EXTENSION.cookie, cookie)])
    : list;
}

/** The GREASE share first, where there is one; then ours in their order. */
function encodeShares(groups: readonly Value[], { greaseGroup }: Drawn, shares: readonly KeyShare[]): Buffer {
  const parts = shares.map(({ group, share }) => typedVector16(group, share));
  if (groups[0] === "grease") parts.unshift(typedVector16(greaseGroup, Buffer.of(0)));
  return encodeExtension(EXTENSION.keyShare, vector16(...parts));
}

const HEADER_BYTES = 4;
const LENGTH_BYTES = 2;
const PADDED_FROM = 256;
const PADDED_TO = 512;

/** As browsers compute it: a message of 256 to 511 bytes becomes one of 512, by one byte of content at least. */
function encodePadding(head: Buffer, parts: readonly Buffer[]): Buffer {
  const size = parts.reduce((sum, part) => sum + part.length, HEADER_BYTES + head.length + LENGTH_BYTES);
  if (size < PADDED_FROM || size >= PADDED_TO) return NOTHING;
  return encodeExtension(EXTENSION.padding, Buffer.alloc(Math.max(1, PADDED_TO - size - HEADER_BYTES)));
}
