/** Client and server codecs of Shadowsocks with known keys, and what each makes of the other's bytes. */
import { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { toDestination } from "#net/address/ip.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { SharedSalts } from "#lib/shared-salts.ts";
import { ReplayFilter } from "#protocols/crypto/replay-filter.ts";
import { findMethod, masterKey, type Method, preSharedKeys } from "#protocols/shadowsocks/methods.ts";
import { plainCodec } from "#protocols/shadowsocks/plain.ts";
import { type Request, serverHandshake } from "#protocols/shadowsocks/server-handshake.ts";
import { type ServerKeys } from "#protocols/shadowsocks/server-keys.ts";
import { Sip004Codec } from "#protocols/shadowsocks/sip004.ts";
import { type Chance, chanceBy, Sip022ClientCodec } from "#protocols/shadowsocks/sip022.ts";
import { UnauthenticatedCodec } from "#protocols/shadowsocks/stream-codec.ts";

export const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
export const method = (name: string) => findMethod(name) as Method;
export const TARGET = toDestination("example.com", 80);
export const ADDRESS = encodeSocksAddress(TARGET);
export const PSK = hex("00112233445566778899aabbccddeeff");
export const SALT = hex("000102030405060708090a0b0c0d0e0f");
export const EMPTY = Buffer.alloc(0);

export function fixedChance(salt: Buffer, unixSeconds: number, padding = 3): Chance {
  return { salt: () => salt, padding: () => Buffer.alloc(padding), nowMs: () => unixSeconds * 1000 };
}
/** One that is older than the oldest request. */
export function filter(): ReplayFilter {
  let now = 0;
  const salts = new ReplayFilter({ capacity: 1000, windowMs: 60_000, now: () => now });
  now = 30_000;
  return salts;
}

export function collect(codec: StreamCodec, wire: Buffer): Buffer {
  const got: Buffer[] = [];
  codec.open(wire, (plain) => got.push(plain as Buffer));
  return Buffer.concat(got);
}

export const CHANCE = chanceBy(Date.now);

export function request(
  keys: ServerKeys,
  wire: Buffer,
  chance: Chance = CHANCE,
  salts = filter(),
): Request | null {
  const arrived = new ByteQueue();
  arrived.push(wire);
  const got = serverHandshake(keys, salts, chance)(arrived);
  return got === null
    ? null
    : { ...got, payload: Buffer.concat([got.payload, collect(got.codec, arrived.takeAll())]) };
}

export function passwordFor(name: string): string {
  const { edition, keyBytes } = method(name);
  return edition === "2022" ? Buffer.alloc(keyBytes, 9).toString("base64") : "pass word";
}

export function clientFor(name: string, password = passwordFor(name)): StreamCodec {
  const found = method(name);
  if (found.edition === "plain") return plainCodec(ADDRESS);
  if (found.stream !== undefined)
    return new UnauthenticatedCodec({
      cipher: found.stream,
      master: masterKey(found, password),
      request: ADDRESS,
      salts: new SharedSalts(),
    });
  if (found.edition === "sip004")
    return new Sip004Codec({
      method: found,
      master: masterKey(found, password),
      request: ADDRESS,
      salts: new SharedSalts(),
    });
  return new Sip022ClientCodec({
    method: found,
    keys: preSharedKeys(found, password),
    address: ADDRESS,
    chance: CHANCE,
  });
}
