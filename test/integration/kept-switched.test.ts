/** Clients that stay with workers behind a switch from HTTP/1.1: what workers answer, and what of it is the event loop's. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { setTimeout as delay } from "node:timers/promises";
import { vless } from "#protocols/vless/index.ts";
import { BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT } from "#transport/websocket/frames.ts";
import { mask } from "#transport/websocket/mask.ts";
import { makeCertificate } from "../support/certificate.ts";
import { openKeptClients, type KeptClients } from "../support/kept-clients.ts";
import { echo, openTcpOrigin } from "../support/origin.ts";
import { until } from "../support/until.ts";

const skip = process.platform === "linux" ? false : "SKIP clients that stay with workers: needs Linux";
const uuid = "b831381d-6324-4d53-ad4f-8cda48b30811";
const certificate = makeCertificate({ names: ["server.test"] });
const TLS = { certificate: certificate.cert, "private-key": certificate.key };
const WAYS = [
  ["", { "allow-insecure": true }],
  [" in TLS", TLS],
] as const;
const PATH = "/switch";
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";

const openServer = (way: object): Promise<KeptClients> =>
  openKeptClients(vless, { ...way, "ws-path": PATH, users: [{ username: "ann", uuid }] });

interface Asked {
  readonly start?: string;
  readonly more?: Readonly<Record<string, string>>;
  readonly isFramed?: boolean;
}

function head({ start = `GET ${PATH}?x=1 HTTP/1.1`, more = {}, isFramed = true }: Asked = {}): string {
  const key = isFramed ? { "Sec-WebSocket-Key": KEY, "Sec-WebSocket-Version": "13" } : {};
  const fields = { Host: "site.test", Connection: "Upgrade", Upgrade: "websocket", ...key, ...more };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${start}\r\n${lines.join("")}\r\n`;
}

/** Of a client: FIN OPCODE, MASK LENGTH, KEY, payload. */
function frame(payload: Uint8Array, opcode = BINARY, isFinal = true): Buffer {
  const key = Buffer.of(1, 2, 3, 4);
  const long = payload.length > 125;
  const length = Buffer.alloc(long ? 9 : 1);
  length[0] = 0x80 | (long ? 127 : payload.length);
  if (long) length.writeBigUInt64BE(BigInt(payload.length), 1);
  const body = Buffer.from(payload);
  mask(body, 0, body.length, key, 0);
  return Buffer.concat([Buffer.of((isFinal ? 0x80 : 0) | opcode), length, key, body]);
}

/** VLESS: VER ID A CMD PORT ATYP ADDR, and `ping`. */
function request(port: number): Buffer {
  const id = Buffer.from(uuid.replaceAll("-", ""), "hex");
  const to = Buffer.of(0, 1, port >>> 8, port & 255, 1, 127, 0, 0, 1);
  return Buffer.concat([Buffer.of(0), id, to, Buffer.from("ping")]);
}

/** What a client hears, and whether it has heard the end. */
class Peer implements Disposable {
  heard = Buffer.alloc(0);
  isOver = false;
  readonly stream: Duplex;

  constructor(stream: Duplex) {
    this.stream = stream;
    const onOver = (): void => void (this.isOver = true);
    stream.on("data", (bytes: Buffer) => (this.heard = Buffer.concat([this.heard, bytes])));
    stream.on("end", onOver).on("close", onOver).on("error", onOver);
  }

  static async open(port: number, way: object): Promise<Peer> {
    const isTls = "certificate" in way;
    const where = { port, host: "127.0.0.1" };
    const socket = isTls ? connectTls({ ...where, rejectUnauthorized: false }) : connect(where);
    socket.on("error", () => {}).setNoDelay(true);
    await once(socket, isTls ? "secureConnect" : "connect");
    return new Peer(socket);
  }

  async switched(asked?: Asked): Promise<string> {
    this.stream.write(head(asked));
    return await this.answer();
  }

  /** The head of the answer, taken off. */
  async answer(): Promise<string> {
    await until("the answer", () => this.heard.includes("\r\n\r\n"));
    const end = this.heard.indexOf("\r\n\r\n") + 4;
    const text = this.heard.toString("latin1", 0, end);
    this.heard = this.heard.subarray(end);
    return text;
  }

  async hears(what: string): Promise<void> {
    await until(JSON.stringify(what), () => this.heard.includes(what));
  }

  [Symbol.dispose](): void {
    this.stream.destroy();
  }
}

type Beginning = readonly [
  what: string,
  isKept: boolean,
  /** Written one after the other, with pauses. */
  writes: (request: Buffer) => readonly Buffer[],
];
const eachByte = (bytes: Buffer): Buffer => Buffer.concat([...bytes].map((one) => frame(Buffer.of(one))));
const PING_FRAME = frame(Buffer.from("hi"), PING);
const halves = (bytes: Buffer, at: number): readonly [Buffer, Buffer] => [
  bytes.subarray(0, at),
  bytes.subarray(at),
];
const fragments = (bytes: Buffer): Buffer => {
  const [first, second] = halves(bytes, 9);
  return Buffer.concat([frame(first, BINARY, false), frame(second, CONTINUATION)]);
};
const BEGINNINGS: readonly Beginning[] = [
  ["one frame", true, (bytes) => [frame(bytes)]],
  ["text", true, (bytes) => [frame(bytes, TEXT)]],
  ["fragments", true, (bytes) => [fragments(bytes)]],
  ["a frame for each byte", true, (bytes) => [eachByte(bytes)]],
  ["an empty frame", true, (bytes) => [Buffer.concat([frame(Buffer.alloc(0)), frame(bytes)])]],
  [
    "a frame that has only begun behind it",
    true,
    (bytes) => [Buffer.concat([frame(bytes), Buffer.of(0x82)]), Buffer.of(0x80, 9, 9, 9, 9)],
  ],
  ["more than is shown", true, (bytes) => [frame(Buffer.concat([bytes, Buffer.alloc(70_000, 0x2e)]))]],
  ["a ping first", false, (bytes) => [Buffer.concat([PING_FRAME, frame(bytes)])]],
  ["a ping behind", false, (bytes) => [Buffer.concat([frame(bytes), PING_FRAME])]],
  ["half a ping behind", true, (bytes) => halves(Buffer.concat([frame(bytes), PING_FRAME]), -1)],
  ["half a head", false, (bytes) => halves(frame(bytes), 3)],
  ["half a frame", false, (bytes) => halves(frame(bytes), 20)],
];

for (const [name, way] of WAYS) {
  test(`whatever the first frames are, both sides hear all${name}`, { skip }, async () => {
    await using server = await openServer(way);
    await using origin = await openTcpOrigin(echo);
    for (const [what, isKept, writes] of BEGINNINGS) {
      const before = server.kept.length;
      using peer = await Peer.open(server.port, way);
      assert.match(await peer.switched(), /^HTTP\/1.1 101 /, what);
      for (const [index, bytes] of writes(request(origin.port)).entries()) {
        if (index > 0) await delay(20);
        peer.stream.write(bytes);
      }
      await peer.hears("ping");
      peer.stream.write(frame(Buffer.from("and more")));
      await peer.hears("and more");
      if (what.includes("ping"))
        await until("the answer", () => peer.heard.includes(Buffer.of(0x80 | PONG, 2)));
      assert.equal(server.kept.length - before, isKept ? 1 : 0, what);
      peer.stream.write(frame(Buffer.of(3, 232), CLOSE));
      await until(`${what}: the end`, () => peer.isOver);
    }
  });

  for (const isFramed of [true, false])
    test(`what follows the request at once${isFramed ? " in frames" : ""}${name}`, { skip }, async () => {
      await using server = await openServer(way);
      await using origin = await openTcpOrigin(echo);
      using peer = await Peer.open(server.port, way);
      const bytes = request(origin.port);
      peer.stream.write(Buffer.concat([Buffer.from(head({ isFramed })), isFramed ? frame(bytes) : bytes]));
      const answer = await peer.answer();
      assert.match(answer, /^HTTP\/1.1 101 /);
      assert.equal(answer.includes("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), isFramed); // RFC 6455 §1.3
      await peer.hears("ping");
      assert.equal(server.kept.length, 1);
    });

  test(`a request in pieces${name}`, { skip }, async () => {
    await using server = await openServer(way);
    await using origin = await openTcpOrigin(echo);
    using peer = await Peer.open(server.port, way);
    for (const part of halves(Buffer.from(head()), 40)) {
      peer.stream.write(part);
      await delay(20);
    }
    assert.match(await peer.answer(), /^HTTP\/1.1 101 /);
    peer.stream.write(frame(request(origin.port)));
    await peer.hears("ping");
  });

  test(
    `a listener that ends has its clients served on, whatever they have said${name}`,
    { skip },
    async () => {
      await using server = await openServer(way);
      await using origin = await openTcpOrigin(echo);
      const beginnings = [head().slice(0, 40), head()];
      using first = await Peer.open(server.port, way);
      using second = await Peer.open(server.port, way);
      const peers = [first, second];
      for (const [index, peer] of peers.entries()) peer.stream.write(beginnings[index] ?? "");
      assert.match(await second.answer(), /^HTTP\/1.1 101 /);
      await delay(20);
      await server.stopAccepting();
      first.stream.write(head().slice(40));
      assert.match(await first.answer(), /^HTTP\/1.1 101 /);
      for (const peer of peers) {
        peer.stream.write(frame(request(origin.port)));
        await peer.hears("ping");
      }
      assert.equal(server.kept.length, 0);
      assert.equal(server.sessions.length, 2);
    },
  );

  test(`first bytes inside the request${name}`, { skip }, async () => {
    await using server = await openServer(way);
    await using origin = await openTcpOrigin(echo);
    using peer = await Peer.open(server.port, way);
    const early = request(origin.port).toString("base64url");
    const answer = await peer.switched({ more: { "Sec-WebSocket-Protocol": early } });
    assert.ok(answer.includes(`Sec-WebSocket-Protocol: ${early}`));
    await peer.hears("ping");
  });

  test(`what is no such request is answered as ever${name}`, { skip }, async () => {
    await using server = await openServer(way);
    const cases: readonly (readonly [Asked, RegExp])[] = [
      [{ start: "GET / HTTP/1.1" }, /^HTTP\/1.1 404 /],
      [{ start: `POST ${PATH} HTTP/1.1` }, /^HTTP\/1.1 400 /],
      [{ more: { Upgrade: "h2c" } }, /^HTTP\/1.1 400 /],
      [{ more: { "Sec-WebSocket-Version": "8" } }, /^HTTP\/1.1 400 /],
      [{ start: "PRI * HTTP/2.0" }, /^$/],
      [{ more: { Cookie: "a".repeat(9_000) } }, /^$/],
    ];
    for (const [asked, expected] of cases) {
      using peer = await Peer.open(server.port, way);
      peer.stream.write(head(asked));
      await until("the end", () => peer.isOver);
      assert.match(peer.heard.toString("latin1"), expected);
    }
    assert.equal(server.sessions.length, 0);
  });

  const FAULTS: readonly (readonly [what: string, bytes: Buffer])[] = [
    ["an end", frame(Buffer.of(3, 232), CLOSE)],
    ["a frame without a mask", Buffer.of(0x82, 5, 0, 0, 0, 0, 0)],
    ["a reserved bit", Buffer.of(0xc2, 0x81, 0, 0, 0, 0, 0)],
    ["an unknown user", frame(Buffer.alloc(100))],
  ];
  for (const [what, bytes] of FAULTS)
    test(`the client is ended behind ${what}${name}`, { skip }, async () => {
      await using server = await openServer(way);
      using peer = await Peer.open(server.port, way);
      await peer.switched();
      peer.stream.write(bytes);
      await until("the end", () => peer.isOver);
      assert.equal(server.sessions.length, 0);
    });
}

test("nothing is answered before a certificate was shown", { skip }, async () => {
  const way = { ...TLS, "client-auth-type": "require-any" };
  await using server = await openServer(way);
  using peer = await Peer.open(server.port, way);
  peer.stream.write(head());
  await until("the end", () => peer.isOver);
  assert.equal(peer.heard.length, 0);
});
