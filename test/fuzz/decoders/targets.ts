/** Every decoder that meets bytes of unauthenticated peers, with good messages for it. */
import type { Duplex } from "node:stream";
import { SILENT } from "#core/log.ts";
import { decodeSocksAddress, encodeSocksAddress } from "#net/address/socks-address.ts";
import { toDestination } from "#net/address/ip.ts";
import { DEFAULT_SCHEME, parseScheme } from "#protocols/anytls/padding.ts";
import { ServerSession } from "#protocols/anytls/server-session.ts";
import * as anytls from "#protocols/anytls/wire.ts";
import { parseAuthority, parseConnectTarget, parsePlainTarget } from "#protocols/http/authority.ts";
import { parseBasic } from "#protocols/http/credentials.ts";
import { decodeConnect, decodeHead as decodeProxyHead, decodeStatus } from "#protocols/http/head.ts";
import { CoolClient } from "#protocols/mux/cool-client.ts";
import { datagramFraming, packetFraming as muxPackets } from "#protocols/mux/packets.ts";
import * as socks from "#protocols/socks/wire.ts";
import * as trojan from "#protocols/trojan/wire.ts";
import * as uot from "#protocols/udp-over-tcp/wire.ts";
import * as cool from "#protocols/shared/mux-cool-frame.ts";
import { MuxServer } from "#protocols/shared/mux-cool-server.ts";
import * as address from "#protocols/shared/port-first-address.ts";
import {
  packetAddrFraming,
  peekPacketAddr,
  plainFraming,
  xudpFraming,
} from "#protocols/shared/datagram-framing.ts";
import { HandshakeInspector, RecordTracker } from "#protocols/shared/vision-inspector.ts";
import { encodeBlock, Unpadder } from "#protocols/shared/vision-padding.ts";
import * as vless from "#protocols/vless/wire.ts";
import { FakeHttpCodec } from "#transport/fake-http.ts";
import { GunCodec } from "#transport/grpc/codec.ts";
import { SectionDecoder } from "#transport/http2/hpack.ts";
import { decodeHead } from "#transport/http-head.ts";
import { PaddingCodec } from "#transport/mux/padding.ts";
import { encodePreface, takePreface } from "#transport/mux/preface.ts";
import { encodeAnswer, encodeStreamRequest, takeAnswer, takeStreamRequest } from "#transport/mux/request.ts";
import { SmuxSession } from "#transport/mux/smux.ts";
import { YamuxSession } from "#transport/mux/yamux.ts";
import { WebSocketCodec } from "#transport/websocket/codec.ts";
import { decodeEarlyData } from "#transport/websocket/early-data.ts";
import { hasPadding } from "#transport/xhttp/padding.ts";
import { codec, handshake, once, session, steps, type Target, whole } from "./kinds.ts";
import { linkTargets } from "./links.ts";
import { lookupTargets } from "./lookups.ts";
import { quicAndAboveTargets } from "./quic.ts";
import { realityTargets } from "./reality.ts";
import { sealedTargets } from "./sealed.ts";
import { tls13Targets } from "./tls13.ts";
import { vlessEncryptionTargets } from "./vless-encryption.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const ID = hex("b831381d63244d53ad4f8cda48b30811");
const NAMED = toDestination("origin.test", 443);
const V4 = toDestination("192.0.2.1", 53);
const V6 = toDestination("2001:db8::1", 53);
const PLACES = [NAMED, V4, V6];
const payload = Buffer.from("some payload");
const item = { payload, destination: V4 };
const joined = (...parts: readonly Uint8Array[]): Buffer => Buffer.concat(parts);

const vlessTargets: readonly Target[] = [
  whole(
    "vless request",
    [
      ...PLACES.map((destination) => ({ flow: "", command: 1, destination })),
      { flow: vless.VISION, command: 3, destination: null },
    ].map((request) => joined(vless.encodeRequest(ID, request), payload)),
    vless.decodeRequest,
  ),
  once(
    "vless address",
    PLACES.map((to) => address.encodeAddress(to)),
    (bytes) => address.decodeAddress(bytes, 0),
  ),
  {
    name: "vless answer",
    seeds: [joined(vless.ANSWER, payload), hex("00 03 010203 ff")],
    run(pieces) {
      const stripper = new vless.AnswerStripper();
      for (const piece of pieces) if (!stripper.done) stripper.strip(piece);
    },
  },
  steps(
    "vless plain datagrams",
    [joined(plainFraming(V4, "client").encode(item), plainFraming(V4, "client").encode(item))],
    () => plainFraming(V4, "server").take,
  ),
  steps("packetaddr", [packetAddrFraming.encode(item)], () => packetAddrFraming.take),
  once("first packetaddr", [packetAddrFraming.encode(item)], peekPacketAddr),
  steps("xudp", [xudpFraming().encode(item)], () => xudpFraming().take),
  {
    name: "vision blocks",
    seeds: [
      joined(encodeBlock(ID, 0, payload, true), encodeBlock(null, 1, payload, false), payload),
      joined(encodeBlock(ID, 2, payload, false), payload),
    ],
    run(pieces) {
      const unpadder = new Unpadder(ID);
      for (const piece of pieces) unpadder.take(piece, () => {});
    },
  },
  {
    name: "vision inspection",
    seeds: [
      hex("160301000501000001ff"),
      hex("1603030020 0200001c0303 00000000000000000000000000000000 00130100002b00020304"),
      hex("1703030003 010203 1703030001 ff"),
    ],
    run(pieces) {
      const inspector = new HandshakeInspector();
      const tracker = new RecordTracker();
      for (const piece of pieces) {
        inspector.see(piece);
        tracker.follow(piece, false);
      }
    },
  },
];

const coolSeeds = [
  joined(
    cool.encodeFrame({ session: 1, status: cool.STATUS_NEW, network: cool.NETWORK_TCP, destination: NAMED }),
    cool.encodeFrame({ session: 1, status: cool.STATUS_KEEP, data: payload }),
    cool.encodeFrame({ session: 1, status: cool.STATUS_END }),
  ),
  cool.encodeFrame({
    session: 0,
    status: cool.STATUS_NEW,
    network: cool.NETWORK_UDP,
    destination: V4,
    globalId: Buffer.alloc(8, 1),
    data: payload,
  }),
  cool.encodeFrame({
    session: 0,
    status: cool.STATUS_KEEP,
    network: cool.NETWORK_UDP,
    destination: V6,
    data: payload,
  }),
];
const smuxSeeds = [
  hex("01 00 0000 03000000 01 02 0300 03000000 616263 01 01 0000 03000000"),
  hex("01 03 0000 00000000"),
];
const yamuxSeeds = [
  hex("00 01 0001 00000001 00000000 00 00 0000 00000001 00000003 616263 00 00 0004 00000001 00000000"),
  hex("00 02 0001 00000000 00000007"),
  hex("00 03 0000 00000000 00000000"),
];
const noop = (): void => {};
const keep = (stream: Duplex): void => void stream.on("error", noop).on("data", noop);
const muxEvents = { onStream: keep, onClosed: noop, log: SILENT };

const muxTargets: readonly Target[] = [
  steps("mux.cool frames", coolSeeds, () => cool.takeFrame),
  session("mux.cool server", coolSeeds, (wire) => {
    new MuxServer(wire, {
      datagramsOnly: false,
      onStream: keep,
      onFlow: (flow) => flow.receive(noop),
      log: SILENT,
    });
  }),
  session("mux.cool client", coolSeeds, (wire) => {
    const client = new CoolClient(wire, { onClosed: noop, log: SILENT });
    keep(client.open(NAMED));
    client.openPackets(V4, { onPacket: noop, onEnd: noop });
  }),
  session("smux", smuxSeeds, (wire) => void new SmuxSession(wire, muxEvents)),
  session("smux client", smuxSeeds, (wire) =>
    keep(new SmuxSession(wire, { ...muxEvents, onStream: null }).open()),
  ),
  session("yamux", yamuxSeeds, (wire) => void new YamuxSession(wire, muxEvents)),
  session("yamux client", yamuxSeeds, (wire) =>
    keep(new YamuxSession(wire, { ...muxEvents, onStream: null }).open()),
  ),
  handshake(
    "sing-mux preface",
    [false, true].map((padding) => encodePreface({ protocol: "yamux", padding })),
    () => takePreface,
  ),
  handshake(
    "sing-mux request",
    PLACES.map((destination) => encodeStreamRequest({ kind: "packets", destination })),
    () => takeStreamRequest,
  ),
  handshake(
    "sing-mux answer",
    [encodeAnswer(null), encodeAnswer("no")],
    () => (arrived) => takeAnswer(arrived) || null,
  ),
  codec("sing-mux padding", [new PaddingCodec().seal(payload)], () => new PaddingCodec()),
  steps("sing-mux packets", [muxPackets("host").encode(item)], () => muxPackets("ip").take),
  steps("sing-mux datagrams", [datagramFraming(V4).encode(item)], () => datagramFraming(V4).take),
];

const settings = anytls.encodeFrame(
  anytls.SETTINGS,
  0,
  anytls.encodeSettings({ v: "2", client: "x", "padding-md5": "0" }),
);
const anytlsSeeds = [
  joined(
    settings,
    anytls.encodeFrame(anytls.SYN, 1),
    anytls.encodeFrame(anytls.PSH, 1, joined(encodeSocksAddress(NAMED), payload)),
    anytls.encodeFrame(anytls.FIN, 1),
  ),
  joined(
    settings,
    anytls.encodeWaste(30),
    anytls.encodeFrame(anytls.HEARTBEAT_REQUEST, 0),
    anytls.encodeFrame(anytls.ALERT, 0, payload),
  ),
];
const anytlsTargets: readonly Target[] = [
  steps("anytls frames", anytlsSeeds, () => anytls.takeFrame),
  session("anytls server", anytlsSeeds, (wire) => {
    new ServerSession(wire, { scheme: DEFAULT_SCHEME, onStream: keep, onClosed: noop });
  }),
  once("anytls settings", [anytls.encodeSettings({ v: "2", client: "x" })], anytls.decodeSettings),
  once("anytls padding scheme", [DEFAULT_SCHEME.raw], parseScheme),
];

const KEY = trojan.keyOf("p");
const smallTargets: readonly Target[] = [
  whole(
    "trojan request",
    PLACES.map((destination) => trojan.encodeRequest(KEY, { command: 1, destination })),
    trojan.decodeRequest,
  ),
  steps(
    "trojan packets",
    PLACES.map((destination) => trojan.packetFraming("client").encode({ payload, destination })),
    () => trojan.packetFraming("server").take,
  ),
  handshake(
    "uot request",
    PLACES.map((destination) => uot.encodeRequest({ connect: true, destination })),
    () => uot.takeRequest,
  ),
  steps(
    "uot packets",
    PLACES.map((destination) => uot.encodePacket({ payload, destination }, "host")),
    () => (arrived) => uot.takePacket(arrived, null),
  ),
  steps(
    "uot connected packets",
    [uot.encodePacket(item, "none")],
    () => (arrived) => uot.takePacket(arrived, V4),
  ),
  once(
    "socks address",
    PLACES.map((to) => encodeSocksAddress(to)),
    (bytes) => decodeSocksAddress(bytes),
  ),
  whole("socks greeting", [socks.encodeGreeting(2), hex("05 02 00 02")], socks.decodeGreeting),
  whole("socks choice", [socks.encodeChoice(0)], socks.decodeChoice),
  whole(
    "socks credentials",
    [socks.encodeCredentials({ username: "ann", password: "p" })],
    socks.decodeCredentials,
  ),
  whole("socks verdict", [socks.encodeVerdict(true)], socks.decodeVerdict),
  whole(
    "socks request",
    PLACES.map((to) => socks.encodeRequest(1, to)),
    socks.decodeRequest,
  ),
  whole(
    "socks reply",
    PLACES.map((to) => socks.encodeReply(0, to)),
    socks.decodeReply,
  ),
  once(
    "socks datagram",
    PLACES.map((to) => joined(socks.encodeDatagramHeader(to, "host"), payload)),
    socks.decodeDatagram,
  ),
  whole(
    "socks4 request",
    [hex("04 01 0050 c0000201 616e6e00"), hex("04 01 0050 00000001 00 6f726967696e2e7465737400")],
    socks.decodeRequest4,
  ),
];

const text = (...lines: readonly string[]): Buffer => Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
const ANSWER = text("HTTP/1.1 200 OK", "Server: x", "Content-Length: 3");
const httpTargets: readonly Target[] = [
  whole("http head", [text("GET /ws?ed=1 HTTP/1.1", "Host: a", "Upgrade: websocket"), ANSWER], decodeHead),
  whole(
    "http proxy head",
    [text("GET http://a/b HTTP/1.1", "Host: a", "Proxy-Authorization: Basic YTpi")],
    decodeProxyHead,
  ),
  whole(
    "http connect",
    [text("CONNECT a:443 HTTP/1.1", "Proxy-Authorization: Basic YTpi"), text("GET http://a/ HTTP/1.0")],
    decodeConnect,
  ),
  whole("http status", [ANSWER], decodeStatus),
  once(
    "http targets",
    ["a:443", "[2001:db8::1]:80", "http://u:p@a:1/b?c"].map((one) => Buffer.from(one)),
    (bytes) => {
      const target = bytes.toString("latin1");
      parseAuthority(target, 80);
      parseConnectTarget(target);
      parsePlainTarget(target, "GET");
      parseBasic(target);
    },
  ),
  codec(
    "http header of a stream",
    [joined(ANSWER, payload)],
    () => new FakeHttpCodec({ method: "GET", path: ["/"], headers: {}, host: "a" }),
  ),
  codec(
    "websocket, from a client",
    [
      hex("82 85 11223344 79475f287e"),
      hex("89 80 00000000 88 82 00000000 03e8"),
      hex("02 fe 0003 00000000 616263"),
    ],
    () => new WebSocketCodec("server", noop),
  ),
  codec(
    "websocket, from a server",
    [hex("82 05 68656c6c6f"), hex("82 7e 0003 616263"), hex("82 7f 0000000000000003 616263 88 00")],
    () => new WebSocketCodec("client", noop),
  ),
  codec(
    "grpc",
    [
      hex("00 00000007 0a 05 68656c6c6f"),
      hex("00 00000009 0a 02 6865 0a 03 6c6c6f"),
      hex("00 00000008 1a 01 00 0a 03 616263"),
    ],
    () => new GunCodec(),
  ),
  once(
    "HPACK",
    [
      hex("828684418cf1e3c2e5f23a6ba0ab90f4ff"),
      hex("3fe101400a637573746f6d2d6b65790c637573746f6d2d76616c7565be"),
      hex("100870617373776f726406736563726574"),
    ],
    (bytes) => new SectionDecoder().decode(bytes),
  ),
  once("early data", [Buffer.from("ALgxOB1jJE1TrU-M2kizCBEAAVXxAX8AAAE")], (bytes) =>
    decodeEarlyData(bytes.toString("latin1")),
  ),
  once("xhttp padding", [Buffer.from(`https://a/x/?x_padding=${"X".repeat(120)}`)], (bytes) =>
    hasPadding(bytes.toString("latin1")),
  ),
];

export const TARGETS: readonly Target[] = [
  ...vlessTargets,
  ...muxTargets,
  ...anytlsTargets,
  ...smallTargets,
  ...httpTargets,
  ...sealedTargets,
  ...linkTargets,
  ...lookupTargets,
  ...tls13Targets,
  ...realityTargets,
  ...vlessEncryptionTargets,
  ...quicAndAboveTargets,
];
