/** What is encrypted: altered on the wire, and (worse) altered before a peer that knows the key has sealed it. */
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { LOOPBACK_V4, toDestination } from "#net/address/ip.ts";
import { TAG_BYTES } from "#protocols/crypto/aead.ts";
import { ReplayFilter } from "#protocols/crypto/replay-filter.ts";
import type { ChunkSealer } from "#protocols/shadowsocks/chunks.ts";
import { clientPackets } from "#protocols/shadowsocks/client-packets.ts";
import { CipherMemory } from "#protocols/shadowsocks/memory.ts";
import { findMethod, masterKey, type Method } from "#protocols/shadowsocks/methods.ts";
import { MuxCodec } from "#protocols/shadowsocks/mux-codec.ts";
import { obfsHttpClient } from "#protocols/shadowsocks/obfs-http.ts";
import { obfsTlsClient } from "#protocols/shadowsocks/obfs-tls.ts";
import { decodeBody, encodeBody } from "#protocols/shadowsocks/packet022.ts";
import { serverHandshake } from "#protocols/shadowsocks/server-handshake.ts";
import { serverKeys } from "#protocols/shadowsocks/server-keys.ts";
import { openRequest } from "#protocols/shadowsocks/server-packets.ts";
import { Sip004Codec } from "#protocols/shadowsocks/sip004.ts";
import { chanceBy, Sip022ClientCodec, sip022Sealer } from "#protocols/shadowsocks/sip022.ts";
import { VmessCodec } from "#protocols/vmess/codec.ts";
import * as header from "#protocols/vmess/header.ts";
import { commandKey } from "#protocols/vmess/kdf.ts";
import { decodePacketAddr } from "#protocols/shared/datagram-framing.ts";
import {
  RequestGuard,
  RequestMemory,
  serverHandshake as vmessHandshake,
} from "#protocols/vmess/server-handshake.ts";
import { vmessUsers } from "#protocols/vmess/users.ts";
import { codec, handshake, once, type Target } from "./kinds.ts";

const CHANCE = chanceBy(Date.now);
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const NAMED = toDestination("origin.test", 443);
const V4 = toDestination("192.0.2.1", 53);
const ADDRESS = encodeSocksAddress(NAMED);
const payload = Buffer.from("some payload");
const item = { payload, destination: V4 };
const method = (name: string): Method => findMethod(name) as Method;
const MEMORY = new CipherMemory();
const SOURCE = { ip: LOOPBACK_V4, port: 9 };

function salts(): ReplayFilter {
  let now = 0;
  const filter = new ReplayFilter({ capacity: 64, windowMs: Infinity, now: () => now });
  now = 3_600_000; // older than every request here
  return filter;
}

function aeadTargets(): readonly Target[] {
  const aes = method("aes-128-gcm");
  const master = masterKey(aes, "p");
  const keys = serverKeys(aes, "p", null);
  const salt = Buffer.alloc(16, 7);
  const seal = (plain: Buffer): Buffer => {
    const client = new Sip004Codec({ method: aes, master, request: Buffer.alloc(0), salt });
    return Buffer.concat([client.seal(plain), client.seal(payload)]);
  };
  const packets = clientPackets(aes, [master], Date.now);
  const make = () => serverHandshake(keys, salts(), CHANCE);
  return [
    handshake("ss request", [seal(Buffer.concat([ADDRESS, payload]))], make),
    inside("ss request, inside", [Buffer.concat([ADDRESS, payload])], (plain) => {
      if (plain.length === 0) return;
      const arrived = new ByteQueue();
      arrived.push(seal(plain));
      make()(arrived);
    }),
    codec(
      "ss answer",
      [new Sip004Codec({ method: aes, master, request: Buffer.alloc(0), salt }).seal(payload)],
      () => new Sip004Codec({ method: aes, master, request: ADDRESS }),
    ),
    once("ss packet", [packets.seal(item)], (bytes) =>
      openRequest(keys, bytes, SOURCE, () => undefined, Date.now, MEMORY),
    ),
  ];
}

function edition2022(): readonly Target[] {
  const aes = method("2022-blake3-aes-128-gcm");
  const psk = Buffer.alloc(16, 9);
  const keys = serverKeys(aes, psk.toString("base64"), null);
  const salt = Buffer.alloc(16, 8);
  const make = () => serverHandshake(keys, salts(), CHANCE);
  const client = new Sip022ClientCodec({ method: aes, keys: [psk], address: ADDRESS, chance: CHANCE });
  const packets = clientPackets(aes, [psk], Date.now);
  const variable = Buffer.concat([ADDRESS, hex("0003 aaaaaa"), payload]);
  const nowMs = 1_700_000_000_000;
  const clientSession = Buffer.alloc(8, 1);
  return [
    handshake("ss 2022 request", [client.seal(payload)], make),
    inside("ss 2022 request, inside", [variable], (plain) => {
      const sealer = sip022Sealer(aes, psk, salt);
      const fixed = Buffer.alloc(11);
      fixed.writeBigUInt64BE(BigInt(Math.floor(CHANCE.nowMs() / 1000)), 1);
      fixed.writeUInt16BE(plain.length, 9);
      const arrived = new ByteQueue();
      arrived.push(sealed(sealer, salt, [fixed, plain]));
      make()(arrived);
    }),
    codec(
      "ss 2022 answer",
      [Buffer.alloc(100, 5)],
      () => new Sip022ClientCodec({ method: aes, keys: [psk], address: ADDRESS, chance: CHANCE }),
    ),
    once("ss 2022 packet", [packets.seal(item)], (bytes) =>
      openRequest(keys, bytes, SOURCE, () => undefined, Date.now, MEMORY),
    ),
    once(
      "ss 2022 packet, inside",
      [null, clientSession].map((one) =>
        encodeBody({ nowMs, clientSession: one, padding: Buffer.alloc(3), destination: V4, payload }),
      ),
      (bytes) => {
        decodeBody(bytes, null, nowMs);
      },
    ),
  ];
}

function sealed(sealer: ChunkSealer, salt: Buffer, parts: readonly Buffer[]): Buffer {
  const out = Buffer.alloc(salt.length + parts.reduce((sum, part) => sum + part.length + TAG_BYTES, 0));
  let at = salt.copy(out);
  for (const part of parts) at = sealer.partInto(out, at, part);
  return out;
}

/** As `once`, for what is sealed anew each time. */
const inside = once;

function vmess(): readonly Target[] {
  const id = hex("b831381d63244d53ad4f8cda48b30811");
  const users = vmessUsers(
    [{ id: "ann", credential: "b831381d-6324-4d53-ad4f-8cda48b30811", flow: null }],
    "x",
  );
  const key = commandKey(id);
  const guard = new RequestGuard(Date.now, new RequestMemory()); // one for all: it is made for many
  const request = (security: number, options: number): header.RequestHeader => ({
    iv: Buffer.alloc(16, 1),
    key: Buffer.alloc(16, 2),
    verifier: 7,
    options,
    security,
    command: header.COMMAND_TCP,
    destination: NAMED,
  });
  const forms = [
    request(header.SECURITY_AES, 5),
    request(header.SECURITY_CHACHA, 1 | 4 | 8 | 16),
    request(header.SECURITY_NONE, 1),
    request(header.SECURITY_ZERO, 0),
  ];
  return [
    handshake(
      "vmess request",
      forms.map((form) => header.sealRequest(key, form, header.newChance(Date.now()))),
      () => vmessHandshake(users, guard),
    ),
    ...forms.map((form, index) =>
      codec(
        `vmess body ${index}`,
        [new VmessCodec(form, Buffer.alloc(0)).seal(payload)],
        () => new VmessCodec(form, null),
      ),
    ),
    codec(
      "vmess answer",
      [new VmessCodec(forms[0] as header.RequestHeader, null).seal(payload)],
      () => new VmessCodec(forms[0] as header.RequestHeader, Buffer.alloc(0)),
    ),
    once(
      "vmess packetaddr",
      [hex("01 c0000201 0035 616263"), hex("02 20010db8000000000000000000000001 0035")],
      decodePacketAddr,
    ),
  ];
}

const pluginTargets: readonly Target[] = [
  codec(
    "obfs http",
    [Buffer.from("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nhello")],
    () => obfsHttpClient("a.test"),
  ),
  codec("obfs tls", [Buffer.concat([Buffer.alloc(102), hex("1603030003 616263 1703030002 6465")])], () =>
    obfsTlsClient("a.test"),
  ),
  codec("v2ray-plugin mux", [hex("0004 0001 02 01 0003 616263 0004 0001 03 00")], () => new MuxCodec()),
];

export const sealedTargets: readonly Target[] = [
  ...aeadTargets(),
  ...edition2022(),
  ...vmess(),
  ...pluginTargets,
];
