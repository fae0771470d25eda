/** SOCKS messages as bytes (RFC 1928, RFC 1929; SOCKS4 and 4a as their authors' notes have them). */
import { ProtocolError } from "#core/errors.ts";
import type { Datagram, Destination, Ip } from "#core/session.ts";
import type { Decoded } from "#net/stream/byte-reader.ts";
import { ANY_V4, ipFromBytes, toDestination } from "#net/address/ip.ts";
import { decodeName, decodeSocksAddress, encodeSocksAddress } from "#net/address/socks-address.ts";
import { byteAt } from "#lib/at.ts";

export const CONNECT = 1;
export const UDP_ASSOCIATE = 3;
export const NO_AUTHENTICATION = 0;
export const USER_PASSWORD = 2;
export const NO_ACCEPTABLE_METHOD = 0xff;

/** Greeting (RFC 1928 §3): VER(1)=5 NMETHODS(1) METHODS(n). */
export function decodeGreeting(bytes: Uint8Array): Decoded<Uint8Array> | null {
  expectByte(bytes[0], 5, "SOCKS version");
  const size = 2 + (bytes[1] ?? Infinity);
  return bytes.length < size ? null : { value: bytes.subarray(2, size), size };
}

export function encodeGreeting(method: number): Buffer {
  return Buffer.from([5, 1, method]);
}

/** Choice (RFC 1928 §3): VER(1)=5 METHOD(1). */
export function decodeChoice(bytes: Uint8Array): Decoded<number> | null {
  expectByte(bytes[0], 5, "SOCKS version");
  return bytes.length < 2 ? null : { value: byteAt(bytes, 1), size: 2 };
}

export function encodeChoice(method: number): Buffer {
  return Buffer.from([5, method]);
}

export interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** Authentication (RFC 1929 §2): VER(1)=1 ULEN(1) UNAME(n) PLEN(1) PASSWD(n). */
export function decodeCredentials(bytes: Buffer): Decoded<Credentials> | null {
  expectByte(bytes[0], 1, "authentication version");
  const userEnd = 2 + (bytes[1] ?? Infinity);
  const size = userEnd + 1 + (bytes[userEnd] ?? Infinity);
  if (bytes.length < size) return null;
  const value = {
    username: bytes.toString("utf8", 2, userEnd),
    password: bytes.toString("utf8", userEnd + 1, size),
  };
  return { value, size };
}

/** Throws `RangeError` where a part has more than 255 bytes: the configuration allows what the protocol does not. */
export function encodeCredentials({ username, password }: Credentials): Buffer {
  const user = Buffer.from(username);
  const pass = Buffer.from(password);
  if (user.length > 255 || pass.length > 255)
    throw new RangeError("SOCKS5 allows user names and passwords of at most 255 bytes");
  return Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([pass.length]), pass]);
}

/** Answer (RFC 1929 §2): VER(1)=1 STATUS(1), 0 is success. */
export function decodeVerdict(bytes: Uint8Array): Decoded<boolean> | null {
  expectByte(bytes[0], 1, "authentication version");
  return bytes.length < 2 ? null : { value: bytes[1] === 0, size: 2 };
}

export function encodeVerdict(accepted: boolean): Buffer {
  return Buffer.from([1, accepted ? 0 : 1]);
}

export interface Request {
  readonly command: number;
  /** Null: the address type is none that we know, so the message has no known end either. */
  readonly destination: Destination | null;
}

/** Request (RFC 1928 §4): VER(1)=5 CMD(1) RSV(1) ATYP(1) DST.ADDR(4 | 1+n | 16) DST.PORT(2, big endian). */
export function decodeRequest(bytes: Uint8Array): Decoded<Request> | null {
  return decodeRequestAt(bytes, 0);
}

/** The one that begins at `at`. */
export function decodeRequestAt(bytes: Uint8Array, at: number): Decoded<Request> | null {
  expectByte(bytes[at], 5, "SOCKS version");
  const type = bytes[at + 3];
  if (type === undefined) return null;
  const command = byteAt(bytes, at + 1);
  if (type !== 1 && type !== 3 && type !== 4) return { value: { command, destination: null }, size: 4 };
  const address = decodeSocksAddress(bytes, at + 3);
  return address === null
    ? null
    : { value: { command, destination: address.destination }, size: address.next - at };
}

export function encodeRequest(command: number, destination: Destination): Buffer {
  return Buffer.concat([Buffer.from([5, command, 0]), encodeSocksAddress(destination)]);
}

export const NOWHERE: Destination = { host: null, ip: ANY_V4, port: 0 };

export interface Reply {
  readonly code: number;
  readonly bound: Destination;
}

/** Reply (RFC 1928 §6): VER(1)=5 REP(1) RSV(1)=0 ATYP(1) BND.ADDR BND.PORT(2). */
export function decodeReply(bytes: Uint8Array): Decoded<Reply> | null {
  const version = bytes[0];
  expectByte(version, 5, "SOCKS version");
  const code = bytes[1];
  // Some servers close behind the code of a failure; what would follow holds no information.
  if (code !== undefined && code !== 0) return { value: { code, bound: NOWHERE }, size: bytes.length };
  if (bytes.length < 4) return null;
  const address = decodeSocksAddress(bytes, 3);
  return address === null ? null : { value: { code: 0, bound: address.destination }, size: address.next };
}

export function encodeReply(code: number, bound: Destination = NOWHERE): Buffer {
  return Buffer.concat([Buffer.from([5, code, 0]), encodeSocksAddress(bound, "ip")]);
}

/** Datagram (RFC 1928 §7): RSV(2)=0 FRAG(1) ATYP(1) DST.ADDR DST.PORT(2) DATA. Null: to be dropped. */
export function decodeDatagram(bytes: Uint8Array): Datagram | null {
  if (bytes.length < 4 || bytes[0] !== 0 || bytes[1] !== 0 || bytes[2] !== 0) return null;
  try {
    const address = decodeSocksAddress(bytes, 3);
    return address && { payload: bytes.subarray(address.next), destination: address.destination };
  } catch (error) {
    if (error instanceof ProtocolError) return null;
    throw error;
  }
}

/** The header before the data; `prefer` as in `encodeSocksAddress`. */
export function encodeDatagramHeader(destination: Destination, prefer: "host" | "ip"): Buffer {
  return Buffer.concat([Buffer.alloc(3), encodeSocksAddress(destination, prefer)]);
}

export interface Request4 extends Request {
  readonly destination: Destination;
  readonly userId: string;
}

const MAX_FIELD4_BYTES = 255;

/**
 * SOCKS4 request: VER(1)=4 CMD(1) DSTPORT(2) DSTIP(4) USERID NUL; 4a, where the address is 0.0.0.x with x not 0: a
 * NUL-terminated name follows. Both fields hold at most 255 bytes here.
 */
export function decodeRequest4(bytes: Buffer): Decoded<Request4> | null {
  expectByte(bytes[0], 4, "SOCKS version");
  if (bytes.length < 9) return null;
  const command = byteAt(bytes, 1);
  const port = bytes.readUInt16BE(2);
  const userEnd = fieldEnd(bytes, 8);
  if (userEnd === null) return null;
  const userId = bytes.toString("utf8", 8, userEnd);
  if (bytes.readUInt32BE(4) >>> 8 !== 0 || bytes[7] === 0) {
    const ip: Ip = ipFromBytes(bytes.subarray(4, 8));
    return { value: { command, userId, destination: { host: null, ip, port } }, size: userEnd + 1 };
  }
  const nameEnd = fieldEnd(bytes, userEnd + 1);
  if (nameEnd === null) return null;
  if (nameEnd === userEnd + 1) throw new ProtocolError("an address with an empty name");
  const destination = toDestination(decodeName(bytes.subarray(userEnd + 1, nameEnd)), port);
  return { value: { command, userId, destination }, size: nameEnd + 1 };
}

function fieldEnd(bytes: Buffer, start: number): number | null {
  const end = bytes.indexOf(0, start);
  if ((end < 0 ? bytes.length : end) - start > MAX_FIELD4_BYTES)
    throw new ProtocolError(`a SOCKS4 field of more than ${MAX_FIELD4_BYTES} bytes`);
  return end < 0 ? null : end;
}

/** SOCKS4 reply: 0 CODE(1) DSTPORT(2) DSTIP(4); clients ignore the last two. */
export function encodeReply4(code: number): Buffer {
  return Buffer.from([0, code, 0, 0, 0, 0, 0, 0]);
}

function expectByte(byte: number | undefined, wanted: number, what: string): void {
  if (byte !== undefined && byte !== wanted) throw new ProtocolError(`${what} ${byte}, expected ${wanted}`);
}
