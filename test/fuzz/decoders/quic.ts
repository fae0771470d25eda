/** QUIC, HTTP/3 with QPACK, and hysteria2: what a peer may say in and above a packet. */
import { toDestination } from "#net/address/ip.ts";
import { salamander } from "#protocols/hysteria2/salamander.ts";
import { ServerUdp } from "#protocols/hysteria2/server-udp.ts";
import { newUdpSessions } from "#protocols/hysteria2/udp-sessions.ts";
import * as hysteria2 from "#protocols/hysteria2/wire.ts";
import { newAssociations } from "#protocols/tuic/associations.ts";
import * as tuic from "#protocols/tuic/wire.ts";
import { decodeHuffman } from "#transport/http-fields/huffman.ts";
import { decodeFields, encodeFields, type Field } from "#transport/http3/qpack.ts";
import { PeerStreams } from "#transport/http3/peer-streams.ts";
import { RequestReader } from "#transport/http3/request-reader.ts";
import { encodeHeaders, takeHeaders } from "#transport/http3/request.ts";
import { ResponseReader } from "#transport/http3/response.ts";
import { NewReno } from "#transport/quic/congestion/new-reno.ts";
import { OwnIds, PeerIds } from "#transport/quic/connection-ids.ts";
import { OWN_NUMBERS } from "#transport/quic/connection-options.ts";
import { ControlQueue } from "#transport/quic/control-queue.ts";
import { FrameDispatch } from "#transport/quic/frame-dispatch.ts";
import { APPLICATION_SPACE, PacketSpace } from "#transport/quic/recovery/packet-space.ts";
import { Recovery } from "#transport/quic/recovery/recovery.ts";
import { StreamSet } from "#transport/quic/streams/stream-set.ts";
import { readHeader, readVersions } from "#transport/quic/wire/header.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import {
  decodeTransportParameters,
  encodeTransportParameters,
  UNSAID_NUMBERS,
} from "#transport/quic/wire/transport-parameters.ts";
import type { PacketFilter } from "#transport/quic/packet-filter.ts";
import { gecko } from "#protocols/hysteria2/gecko.ts";
import { udpFrame } from "../../support/hysteria2-frame.ts";
import { handshake, once, over, type Target } from "./kinds.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");
const noop = (): void => {};
const ID = Buffer.alloc(8, 1);
const SENT_PACKETS = 40;

function sealedBy(filter: PacketFilter, datagram: Uint8Array): Buffer[] {
  const sealed: Buffer[] = [];
  filter.seal(datagram, null, (each) => void sealed.push(Buffer.from(each)));
  return sealed;
}

/** What stands behind the frames of a connection on which some packets went out and one stream is open. */
function dispatch(isEarly = false): { read(bytes: Uint8Array): void } {
  const numbers = { ...UNSAID_NUMBERS, ...OWN_NUMBERS };
  const controls = new ControlQueue();
  const streams = new StreamSet({
    isServer: false,
    own: numbers,
    abortCode: 0,
    controls,
    onStream: (stream) => void stream.on("error", noop).resume(),
    onIdle: noop,
    wake: noop,
    sendBufferBytes: () => 65_536,
  });
  streams.begin({ ...numbers, maxStreamsBidi: 4 });
  const stream = streams.open(true);
  stream?.on("error", noop).resume();
  const recovery = new Recovery(new NewReno(), streams);
  const space = new PacketSpace(APPLICATION_SPACE);
  const packet = {
    bytes: 1200,
    isEliciting: true,
    isMarked: false,
    stream: 0,
    offset: 0,
    length: 0,
    isLast: false,
  };
  for (let count = 0; count < SENT_PACKETS; count++)
    recovery.onSent(space, { ...packet, items: null }, count);
  const frames = new FrameDispatch({
    isServer: false,
    controls,
    recovery,
    streams,
    peerIds: new PeerIds(controls, ID),
    ownIds: new OwnIds(controls, null, noop),
    onCrypto: noop,
    onAcked: noop,
    onHandshakeDone: noop,
    onPathChallenge: noop,
    onPathResponse: noop,
    onDatagram: noop,
    onClose: noop,
  });
  return { read: (bytes) => void frames.read(space, new WireReader().reset(bytes), 100, isEarly) };
}

const FRAMES = [
  "01 0000", // PING, PADDING
  "02 20 0a 02 03 01 02 00 04", // ACK with ranges
  "03 05 00 00 05 01 02 03", // ACK with marks of congestion
  "0a 00 03 616263 0f 00 03 02 6465", // STREAM, and its end elsewhere
  "0e 00 4003 02 6162 0f 03 00 01 61",
  "04 03 07 00 05 00 09", // RESET_STREAM, STOP_SENDING
  "10 4400 11 00 4400 12 08 13 08",
  "14 00 15 00 00 16 00 17 00",
  `18 01 00 08 ${"02".repeat(8)} ${"03".repeat(16)} 19 00`,
  "1a 0102030405060708 1b 0102030405060708",
  "1c 0a 06 02 6e6f 1d 4100 00",
  "06 00 04 01020304 07 02 aabb 1e",
  "31 02 6162 30 636465",
].map(hex);

const FIELDS: readonly Field[] = [
  [":status", "233"],
  ["hysteria-udp", "true"],
  ["hysteria-cc-rx", "auto"],
  ["hysteria-padding", "xyz"],
];
const SECTION = encodeFields(FIELDS);
const HEADERS = Buffer.from(encodeHeaders(FIELDS));
const REQUEST = Buffer.from(
  encodeHeaders([
    [":method", "POST"],
    [":scheme", "https"],
    [":authority", "hysteria"],
    [":path", "/auth"],
  ]),
);

const quicTargets: readonly Target[] = [
  once(
    "QUIC header",
    [
      hex(`c3 00000001 08 ${"01".repeat(8)} 00 00 4010 ${"00".repeat(16)}`),
      hex(`e0 00000001 08 ${"01".repeat(8)} 04 02020202 4010 ${"00".repeat(16)}`),
      hex(`80 00000000 08 ${"01".repeat(8)} 00 00000001 6b3343cf`),
      hex(`40 ${"01".repeat(8)} ${"00".repeat(20)}`),
    ],
    (bytes) => readHeader(new WireReader().reset(bytes)),
  ),
  once("QUIC versions", [hex(`80 00000000 08 ${"01".repeat(8)} 00 00000001 6b3343cf`)], readVersions),
  once("QUIC frames", FRAMES, (bytes) => dispatch().read(bytes)),
  once("QUIC frames of 0-RTT", FRAMES, (bytes) => dispatch(true).read(bytes)),
  ...(["client", "server"] as const).map((role) =>
    once(
      `QUIC transport parameters of a ${role}`,
      [Buffer.from(encodeTransportParameters({ ...OWN_NUMBERS, initialSource: ID }))],
      (bytes) => decodeTransportParameters(bytes, role),
    ),
  ),
];

const http3Targets: readonly Target[] = [
  handshake("HTTP/3 answer", [HEADERS, Buffer.concat([hex("21 02 0000"), HEADERS])], () => takeHeaders),
  once("HTTP/3 response", [Buffer.concat([HEADERS, hex("0003616263 2102aabb 0000")])], (bytes) => {
    const reader = new ResponseReader(noop);
    reader.push(Buffer.from(bytes));
    reader.end();
  }),
  over(
    "HTTP/3 request",
    [
      Buffer.concat([REQUEST, hex("00 03 616263 00 02 6465")]),
      Buffer.concat([hex("21 02 0000"), REQUEST, Buffer.of(1, 2, 0, 0)]),
    ],
    (stream) =>
      void new RequestReader(stream, {
        takeStream: () => null,
        onSection: () => true,
        onHeaders: (_fields, body) => void body.resume(),
        onFault: noop,
      }),
  ),
  over(
    "HTTP/3 streams of one direction",
    [hex("00 04 03 01 00 07 0d 01 08"), hex("02 3f e1 1f"), hex("40 54 00 01 02"), hex("01 05 00")],
    (stream) => new PeerStreams(noop).take(stream),
  ),
  once("QPACK", [SECTION, hex("0000 510b 2f69 6e64 6578 2e68 746d 6c"), hex("0000 c0 d9")], decodeFields),
  once("Huffman", [hex("f1e3c2e5f23a6ba0ab90f4ff"), hex("a8eb10649cbf")], (bytes) =>
    decodeHuffman(bytes, 4096),
  ),
];

const frameOf = (fragment: number, fragments: number): Buffer =>
  udpFrame(1, { packet: 7, fragment, fragments }, { address: "192.0.2.1:53", data: Buffer.from("abc") });
const disguise = salamander("in-disguise");
const hysteria2Targets: readonly Target[] = [
  handshake(
    "hysteria2 answer",
    [hex("00 02 6f6b 03 616263"), hex("01 02 6e6f 00")],
    () => hysteria2.takeTcpResponse,
  ),
  handshake(
    "hysteria2 request",
    [hysteria2.encodeTcpRequest("example.com:443", "xyz"), hex("80000401 03 613a31 00")],
    () => hysteria2.takeTcpRequest,
  ),
  once("hysteria2 client's frame", [frameOf(0, 1)], (bytes) => {
    const udp = new ServerUdp({ mostBytes: 1200, send: noop }, (flow) => flow.receive(noop));
    udp.take(bytes);
    udp.close();
  }),
  once("hysteria2 frame", [frameOf(0, 1)], (bytes) => {
    const { address } = hysteria2.decodeUdp(bytes);
    hysteria2.decodeAddress(address);
  }),
  once(
    "hysteria2 fragments",
    [0, 1].map((fragment) => frameOf(fragment, 2)),
    (bytes) => {
      const sessions = newUdpSessions({ mostBytes: 1200, send: noop, ended: noop });
      sessions.open().receive(noop);
      sessions.take(bytes);
      sessions.take(bytes);
      sessions.close();
    },
  ),
  once("hysteria2 salamander", sealedBy(disguise, Buffer.alloc(40, 3)), (bytes) =>
    disguise.open(bytes, null),
  ),
  once("hysteria2 gecko", sealedBy(gecko("password"), Buffer.alloc(1200, 0xc3)), (bytes) =>
    gecko("password").open(bytes, null),
  ),
];

const part = { association: 0, packet: 7, data: Buffer.from("abc") };
const fromServer = [
  { ...part, fragments: 1, fragment: 0, address: toDestination("192.0.2.1", 53) },
  { ...part, fragments: 2, fragment: 0, address: toDestination("a.example", 53) },
  { ...part, fragments: 2, fragment: 1, address: null },
].map(tuic.encodePacket);
const tuicTargets: readonly Target[] = [
  once("tuic packet", fromServer, tuic.decodePacket),
  handshake(
    "tuic connect",
    ["a.example", "192.0.2.1", "2001:db8::1"].map((host) => tuic.encodeConnect(toDestination(host, 80))),
    () => tuic.takeConnect,
  ),
  once(
    "tuic authenticate",
    [tuic.encodeAuthenticate(Buffer.alloc(16, 1), Buffer.alloc(32, 2))],
    tuic.decodeAuthenticate,
  ),
  once("tuic dissociate", [tuic.encodeDissociate(7)], tuic.decodeDissociate),
  once("tuic command", [Buffer.from(tuic.HEARTBEAT)], tuic.commandOf),
  once("tuic fragments", fromServer, (bytes) => {
    const associations = newAssociations({ mostBytes: 1200, send: noop, dissociate: noop, ended: noop });
    associations.open().receive(noop);
    associations.take(bytes);
    associations.take(bytes);
    associations.close();
  }),
];

export const quicAndAboveTargets: readonly Target[] = [
  ...quicTargets,
  ...http3Targets,
  ...hysteria2Targets,
  ...tuicTargets,
];
