/** From the keys of a node to what a tunnel is made of. */
import { ConfigError } from "#core/errors.ts";
import { type Cidr, cidrOf } from "#net/address/cidr.ts";
import { parseIpBytes } from "#net/address/ip.ts";
import type { Partner } from "./handshake.ts";
import type { OutboundOptions } from "./options.ts";
import { agree, type KeyPair, readPair } from "./primitives.ts";
import { KEY_BYTES } from "./sizes.ts";

/** What mihomo and others take where none is given: it fits into 1,500 bytes over IPv6, and with a margin. */
const DEFAULT_MTU = 1408;
/** What every way of IPv6 carries (RFC 8200, 5). */
const LEAST_MTU = 1280;
/** One datagram holds no more. */
const MOST_MTU = 65_000;
const EVERYTHING = ["0.0.0.0/0", "::/0"];
const NO_RESERVED = [0, 0, 0];

export interface Settings {
  /** Equal where one tunnel does for both. */
  readonly identity: unknown;
  readonly own: KeyPair;
  readonly mtuBytes: number;
  readonly addresses: readonly Cidr[];
  readonly persistentMs: number;
  readonly peers: readonly PeerAt[];
}

/** A peer, and where its server is. */
export interface PeerAt {
  readonly partner: Partner;
  readonly server: string;
  readonly port: number;
  readonly allowed: readonly Cidr[];
  readonly reserved: Uint8Array;
}

type PeerOptions = Pick<
  OutboundOptions,
  "server" | "port" | "public-key" | "pre-shared-key" | "reserved" | "allowed-ips"
>;

/** Throws `ConfigError`, which names the key. */
export function readSettings(options: OutboundOptions): Settings {
  const own = readPair(Buffer.from(options["private-key"], "base64"));
  const addresses = [options.ip, options.ipv6].flatMap((text) =>
    text === undefined ? [] : ownAddress(text),
  );
  if (addresses.length === 0) throw new ConfigError("ip: this node needs an address of its own, ip or ipv6");
  const { peers: several = [] } = options;
  const peers =
    several.length > 0
      ? several.map((peer, at) => readPeer(own, peer, `peers[${at}].`))
      : [readPeer(own, { ...options, "allowed-ips": allowedOf(options) }, "")];
  const mtuBytes = Math.min(MOST_MTU, Math.max(LEAST_MTU, options.mtu ?? DEFAULT_MTU));
  const persistentMs = (options["persistent-keepalive"] ?? 0) * 1000;
  const written = several.length > 0 ? several : options["public-key"];
  const { "private-key": key, "pre-shared-key": second, server, port, ip, ipv6 } = options;
  const rest = [server, port, second, options["allowed-ips"], options.reserved ?? []];
  const identity = [key, ip, ipv6, mtuBytes, persistentMs, written, rest];
  return { identity, own, addresses, mtuBytes, persistentMs, peers };
}

function allowedOf({ "allowed-ips": given = [] }: OutboundOptions): string[] {
  return given.length > 0 ? given : EVERYTHING;
}

function readPeer(own: KeyPair, peer: PeerOptions, path: string): PeerAt {
  const { server, port, "public-key": publicKey, "pre-shared-key": presharedKey } = peer;
  if (server === undefined) throw new ConfigError(`${path}server: is missing`);
  if (port === undefined) throw new ConfigError(`${path}port: is missing`);
  if (publicKey === undefined) throw new ConfigError(`${path}public-key: is missing`);
  const raw = Buffer.from(publicKey, "base64");
  const shared = agree(own, raw);
  if (shared === null) throw new ConfigError(`${path}public-key: is no key that can be used`);
  const { reserved = [], "allowed-ips": allowed = [] } = peer;
  if (allowed.length === 0) throw new ConfigError(`${path}allowed-ips: is missing`);
  const preshared =
    presharedKey === undefined ? Buffer.alloc(KEY_BYTES) : Buffer.from(presharedKey, "base64");
  return {
    partner: { publicKey: raw, presharedKey: preshared, shared },
    server,
    port,
    allowed: allowed.map(cidrOf),
    reserved: Uint8Array.from(reserved.length === 0 ? NO_RESERVED : reserved),
  };
}

/** Alone: what else is in its network is reached through the peers, as everything. */
function ownAddress(text: string): Cidr[] {
  const bytes = parseIpBytes(text.split("/", 1)[0] ?? "");
  return bytes === null ? [] : [{ bytes, bits: bytes.length * 8 }];
}
