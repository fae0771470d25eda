/** The hidden ClientHello, and the short form in which it is sealed (RFC 9849 §5.1). */
import { TlsFault } from "#transport/tls13/alerts.ts";
import { EXTENSION, type Extensions } from "#transport/tls13/extensions.ts";
import {
  type ClientHello,
  decodeClientHello,
  encodeClientHello,
  TLS_1_3,
} from "#transport/tls13/hello-messages.ts";
import { numbers16, vector16, vector8, WireReader } from "#transport/tls13/wire.ts";
import { INNER_ECH } from "./extension.ts";

/** What only a server of TLS 1.2 reads: point formats, extended master secret, session ticket, renegotiation. */
const OF_TLS_1_2: ReadonlySet<number> = new Set([11, 23, 35, 65281]);
/** Has another value inside, or no place there. */
const NOT_SHARED: ReadonlySet<number> = new Set([
  EXTENSION.serverName,
  EXTENSION.encryptedClientHello,
  EXTENSION.supportedVersions,
  EXTENSION.padding,
  EXTENSION.preSharedKey,
  EXTENSION.earlyData,
]);
const FIRST_TLS_1_3_SUITE = 0x1301;
const LAST_TLS_1_3_SUITE = 0x13ff;
const NOTHING = Buffer.alloc(0);
const PADDED_TO = 32;
/** Of server_name around its name (RFC 6066 §3), for a hello without one. */
const NAME_HEAD_BYTES = 9;

/** 0xXaXa (RFC 8701 §2). */
function isGrease(value: number): boolean {
  return (value & 0x0f0f) === 0x0a0a && value >> 8 === (value & 0xff);
}

/** The extensions that the hidden hello takes from the one around it, in their order there. */
function sharedTypes(outer: Extensions): number[] {
  return [...outer.keys()].filter((type) => !NOT_SHARED.has(type) && !OF_TLS_1_2.has(type));
}

/** LIST(2) TYPE(1)=0 NAME(2+n). */
function nameBody(name: string): Buffer {
  return vector16(Buffer.of(0), vector16(Buffer.from(name, "latin1")));
}

/**
 * The hello that `outer` is to hide: TLS 1.3 alone, the real name (empty: none), and the rest as it is there, so that
 * little of it has to be sealed.
 */
export function makeInner(outer: ClientHello, random: Buffer, serverName: string): ClientHello {
  const versions = outer.extensions.get(EXTENSION.supportedVersions) ?? NOTHING;
  const grease = new WireReader(versions, "supported_versions").numbers8().filter(isGrease);
  const extensions = new Map<number, Buffer>();
  if (serverName !== "") extensions.set(EXTENSION.serverName, nameBody(serverName));
  extensions.set(EXTENSION.encryptedClientHello, INNER_ECH);
  extensions.set(EXTENSION.supportedVersions, vector8(numbers16([...grease, TLS_1_3])));
  for (const type of sharedTypes(outer.extensions))
    extensions.set(type, outer.extensions.get(type) ?? NOTHING);
  const isNew = (suite: number): boolean =>
    isGrease(suite) || (suite >= FIRST_TLS_1_3_SUITE && suite <= LAST_TLS_1_3_SUITE);
  return { random, sessionId: outer.sessionId, suites: outer.suites.filter(isNew), extensions };
}

/** Without its session id and with a list of what it shares, filled up so that its length says little of the name. */
export function packInner(inner: ClientHello, outer: ClientHello, maxNameBytes: number): Buffer {
  const shared = sharedTypes(outer.extensions);
  const extensions = new Map<number, Buffer>();
  for (const [type, body] of inner.extensions) if (!shared.includes(type)) extensions.set(type, body);
  if (shared.length > 0) extensions.set(EXTENSION.echOuterExtensions, vector8(numbers16(shared)));
  const packed = encodeClientHello({ ...inner, sessionId: NOTHING, extensions });
  const name = inner.extensions.get(EXTENSION.serverName);
  const filled =
    name === undefined
      ? maxNameBytes + NAME_HEAD_BYTES
      : Math.max(0, maxNameBytes - (name.length - nameBody("").length));
  const size = Math.ceil((packed.length + filled) / PADDED_TO) * PADDED_TO;
  return Buffer.concat([packed, Buffer.alloc(size - packed.length)]);
}

/** The hidden hello again, as its client made it. Throws `TlsFault` (RFC 9849 §5.1, §7.1). */
export function unpackInner(packed: Buffer, outer: ClientHello): ClientHello {
  const { hello, padding } = splitPadding(packed);
  if (padding.some((byte) => byte !== 0)) throw illegal("padding that is not zero");
  if (hello.sessionId.length > 0) throw illegal("a session id of its own");
  const extensions = new Map<number, Buffer>();
  const add = (type: number, body: Buffer): void => {
    if (extensions.has(type)) throw illegal(`extension ${type} stands twice`);
    extensions.set(type, body);
  };
  for (const [type, body] of hello.extensions)
    if (type === EXTENSION.echOuterExtensions) for (const one of taken(body, outer)) add(...one);
    else add(type, body);
  const inner = { ...hello, sessionId: outer.sessionId, extensions };
  checkInner(inner);
  return inner;
}

/** Where the hello ends is said by its last length alone. */
function splitPadding(packed: Buffer): { readonly hello: ClientHello; readonly padding: Buffer } {
  const reader = new WireReader(packed, "the hidden ClientHello");
  reader.bytes(2 + 32);
  reader.vector8();
  reader.vector16();
  reader.vector8();
  reader.vector16();
  const size = packed.length - reader.left;
  return { hello: decodeClientHello(packed.subarray(0, size)), padding: packed.subarray(size) };
}

/** In the order of the outer hello, each once. */
function taken(body: Buffer, outer: ClientHello): (readonly [number, Buffer])[] {
  const list = new WireReader(body, "ech_outer_extensions");
  const types = list.numbers8();
  list.end();
  const all = [...outer.extensions];
  let at = 0;
  return types.map((type) => {
    if (type === EXTENSION.encryptedClientHello) throw illegal("it refers to itself");
    while (at < all.length && all[at]?.[0] !== type) at++;
    const found = all[at++];
    if (found === undefined) throw illegal(`extension ${type} is not where it says`);
    return found;
  });
}

function checkInner({ extensions }: ClientHello): void {
  if (extensions.get(EXTENSION.encryptedClientHello)?.equals(INNER_ECH) !== true)
    throw illegal("it is not marked as hidden");
  const versions = extensions.get(EXTENSION.supportedVersions);
  const offered = versions === undefined ? [] : new WireReader(versions, "supported_versions").numbers8();
  if (!offered.includes(TLS_1_3) || offered.some((version) => version < TLS_1_3 && !isGrease(version)))
    throw illegal("it offers another version than TLS 1.3");
}

function illegal(what: string): TlsFault {
  return new TlsFault("illegal_parameter", `the hidden ClientHello: ${what}`);
}
