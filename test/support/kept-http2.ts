/** Listeners over gRPC and h2 whose connections workers keep, and a client of single frames. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import type { Protocol } from "#core/protocol.ts";
import { toDestination } from "#net/address/ip.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { COMMAND_CONNECT, encodeRequest as encodeTrojan, keyOf } from "#protocols/trojan/wire.ts";
import { vless } from "#protocols/vless/index.ts";
import { COMMAND_TCP, encodeRequest as encodeVless } from "#protocols/vless/wire.ts";
import { vmess } from "#protocols/vmess/index.ts";
import { MESSAGE_HEAD_BYTES, MessageReader, writeMessageHead } from "#transport/grpc/messages.ts";
import type { Field } from "#transport/http-fields/section.ts";
import * as http2 from "#transport/http2/frames.ts";
import { encodeSection, SectionDecoder } from "#transport/http2/hpack.ts";
import { STREAM_WINDOW_BYTES } from "#transport/http2/windows.ts";
import { type KeptClients, openKeptClients } from "./kept-clients.ts";
import { directDialer } from "./direct-accept.ts";
import { openClient } from "./protocol-pair.ts";
import { dialReality } from "./reality.ts";
import { REALITY } from "./reality-sides.ts";
import { clientTls, serverTls, uuid } from "./tls-sides.ts";
import { until } from "./until.ts";

export const bobUuid = "11111111-2222-3333-4444-555555555555";
const PATH = "/Gun/Tun";

export interface Http2Kind {
  readonly protocol: Protocol;
  readonly server: object;
  readonly client: object;
  readonly security: "plain" | "tls" | "reality";
  /** Bodies are messages of gRPC. */
  readonly isGrpc: boolean;
}

const UUIDS = [
  { username: "ann", uuid },
  { username: "bob", uuid: bobUuid },
];
const USERS: Readonly<Record<string, readonly [Protocol, server: object, client: object]>> = {
  vless: [vless, { users: UUIDS }, { uuid }],
  vmess: [vmess, { users: UUIDS.map((user) => ({ ...user, alterId: 0 })) }, { uuid, cipher: "auto" }],
  trojan: [
    trojan,
    { users: UUIDS.map(({ username, uuid: password }) => ({ username, password })) },
    { password: uuid },
  ],
};
const GRPC = { network: "grpc", "grpc-opts": { "grpc-service-name": "Gun" } };
const STREAM_ONE = { path: "/x", host: "a.test", mode: "stream-one" };
const CARRIERS: Readonly<Record<string, readonly [server: object, client: object]>> = {
  "grpc, plain": [{ "allow-insecure": true, "grpc-service-name": "Gun" }, GRPC],
  "grpc, tls": [
    { ...serverTls, "grpc-service-name": "Gun" },
    { ...clientTls, ...GRPC },
  ],
  "grpc, reality": [
    { ...REALITY.server, "grpc-service-name": "Gun" },
    { ...REALITY.client, ...GRPC },
  ],
  "xhttp, tls": [
    { ...serverTls, "xhttp-config": STREAM_ONE },
    { ...clientTls, network: "xhttp", "xhttp-opts": STREAM_ONE },
  ],
  "xhttp, reality": [
    { ...REALITY.server, "xhttp-config": STREAM_ONE },
    { ...REALITY.client, network: "xhttp", "xhttp-opts": { ...STREAM_ONE, mode: "auto" } },
  ],
  "h2, tls": [
    { ...serverTls, "h2-config": { host: ["a.test"], path: "/h2" } },
    { ...clientTls, network: "h2", "h2-opts": { host: ["a.test"], path: "/h2" } },
  ],
};

/** Only nodes of VLESS have XHTTP. Trojan has no h2, and nothing without TLS. */
function mayHave(user: string, carrier: string): boolean {
  if (carrier.startsWith("xhttp")) return user === "vless";
  return user !== "trojan" || (carrier.startsWith("grpc") && carrier !== "grpc, plain");
}

export const KINDS: Readonly<Record<string, Http2Kind>> = Object.fromEntries(
  Object.entries(USERS).flatMap(([user, [protocol, server, client]]) =>
    Object.entries(CARRIERS)
      .filter(([carrier]) => mayHave(user, carrier))
      .map(([carrier, [below, above]]) => [
        `${user} over ${carrier}`,
        {
          protocol,
          server: { ...server, ...below },
          client: { ...client, ...above },
          security: /\w+$/.exec(carrier)?.[0] as Http2Kind["security"],
          isGrpc: carrier.startsWith("grpc"),
        },
      ]),
  ),
);

export const openServer = ({ protocol, server }: Http2Kind, more: object = {}): Promise<KeptClients> =>
  openKeptClients(protocol, { ...server, ...more });

/** Our own client in the event loop, of ann: all its streams are in one connection. */
export async function nodeOf({ protocol, client }: Http2Kind, port: number, more: object = {}) {
  const sockets: Duplex[] = [];
  const dialer: typeof directDialer = {
    ...directDialer,
    async connect(...asked) {
      const socket = await directDialer.connect(...asked);
      sockets.push(socket);
      return socket;
    },
  };
  const options = { server: "127.0.0.1", port, udp: true, ...client, ...more };
  const outbound = await openClient(protocol, options, { dialer });
  const context = () => ({ signal: AbortSignal.timeout(20_000), metadata: null });
  const open = async (to: number): Promise<Duplex> =>
    (await outbound.connect(toDestination("127.0.0.1", to), context())).on("error", () => {});
  return { outbound, sockets, connect: open, [Symbol.asyncDispose]: () => outbound[Symbol.asyncDispose]() };
}

export const vlessTo = (port: number, id = uuid): Buffer =>
  encodeVless(Buffer.from(id.replaceAll("-", ""), "hex"), {
    flow: "",
    command: COMMAND_TCP,
    destination: toDestination("127.0.0.1", port),
  });

export const trojanTo = (port: number, password = uuid): Buffer =>
  encodeTrojan(keyOf(password), {
    command: COMMAND_CONNECT,
    destination: toDestination("127.0.0.1", port),
  });

/** A message of gRPC with so much in it. */
export function message(bytes: Uint8Array): Buffer {
  const out = Buffer.alloc(MESSAGE_HEAD_BYTES + bytes.length);
  writeMessageHead(out, 0, bytes.length);
  out.set(bytes, MESSAGE_HEAD_BYTES);
  return out;
}

export const REQUEST: readonly Field[] = [
  [":method", "POST"],
  [":scheme", "https"],
  [":authority", "server.test"],
  [":path", PATH],
  ["content-type", "application/grpc"],
];

export const requestFrame = (id: number, fields = REQUEST, flags = 0): Buffer =>
  http2.encodeFrame(http2.HEADERS, http2.END_HEADERS | flags, id, encodeSection(fields, false));

/** What the server said of one stream. */
class HeardStream {
  readonly fields: Field[] = [];
  data: Buffer = Buffer.alloc(0);
  bytes = 0;
  isOver = false;
  resetBy: number | null = null;
  /** More than there was from the start. */
  granted = 0;
  readonly #body = new MessageReader((bytes, from, to) => {
    this.data = Buffer.concat([this.data, Buffer.from(bytes.subarray(from, to))]);
  });

  take(bytes: Buffer, isGrpc: boolean): void {
    this.bytes += bytes.length;
    if (isGrpc) this.#body.take(bytes, 0, bytes.length);
    else this.data = Buffer.concat([this.data, bytes]);
  }

  valueOf(name: string): string | undefined {
    return this.fields.find(([other]) => other === name)?.[1];
  }
}

/** A client in the test's own hands: it grants nothing that it is not told to. */
export class FrameClient {
  /** What the frames are in: the connection, or TLS over it. */
  readonly #stream: Duplex;
  readonly #isGrpc: boolean;
  readonly socket: Socket;
  readonly others: { readonly type: number; readonly flags: number; readonly payload: Buffer }[] = [];
  isClosed = false;
  readonly #streams = new Map<number, HeardStream>();
  readonly #decoder = new SectionDecoder();
  #held: Buffer = Buffer.alloc(0);

  constructor(stream: Duplex, socket: Socket, isGrpc: boolean) {
    this.#stream = stream;
    this.#isGrpc = isGrpc;
    this.socket = socket;
    stream.on("error", () => {}).on("close", () => (this.isClosed = true));
    stream.on("data", (bytes: Buffer) => this.#take(bytes)).on("end", () => stream.end());
  }

  send(...frames: readonly Uint8Array[]): void {
    this.#stream.write(Buffer.concat(frames));
  }

  begin(): void {
    this.send(http2.CLIENT_PREFACE, http2.encodeSettings([]));
  }

  /** In one frame; of gRPC as one message. */
  say(id: number, bytes: Uint8Array | string, flags = 0): void {
    const body = Buffer.from(bytes);
    this.send(http2.encodeFrame(http2.DATA, flags, id, this.#isGrpc ? message(body) : body));
  }

  open(id: number, header: Uint8Array): void {
    this.send(requestFrame(id));
    if (header.length > 0) this.say(id, header);
  }

  heard(id: number): HeardStream {
    let stream = this.#streams.get(id);
    if (stream === undefined) this.#streams.set(id, (stream = new HeardStream()));
    return stream;
  }

  /** So many bytes of data, which are taken away. */
  async got(id: number, size: number): Promise<Buffer> {
    const stream = this.heard(id);
    await until(`stream ${id} says ${size} bytes`, () => stream.data.length >= size);
    const taken = stream.data.subarray(0, size);
    stream.data = stream.data.subarray(size);
    return taken;
  }

  /** As much on each of them, in pieces, as it may. */
  async fill(ids: readonly number[], piece: Uint8Array): Promise<void> {
    const sent = new Map([0, ...ids].map((id) => [id, 0]));
    const size = piece.length + MESSAGE_HEAD_BYTES;
    const add = (id: number): number => (sent.get(id) ?? 0) + size;
    const maySend = (id: number): boolean =>
      add(id) <= STREAM_WINDOW_BYTES - size + this.heard(id).granted &&
      add(0) <= http2.FIRST_WINDOW + this.heard(0).granted;
    for (let silentMs = 0; silentMs < 300; silentMs += 10) {
      for (const id of ids)
        while (maySend(id) && this.socket.writableLength < 1 << 20) {
          for (const one of [0, id]) sent.set(one, add(one));
          this.say(id, piece);
          silentMs = 0;
        }
      await delay(10);
    }
  }

  async isReset(id: number): Promise<number> {
    await until(`stream ${id} is reset`, () => this.heard(id).resetBy !== null);
    return this.heard(id).resetBy ?? -1;
  }

  async isOver(id: number): Promise<void> {
    await until(`stream ${id} is over`, () => this.heard(id).isOver);
  }

  async closed(): Promise<void> {
    await until("the connection is closed", () => this.isClosed);
  }

  #take(bytes: Buffer): void {
    this.#held = Buffer.concat([this.#held, bytes]);
    while (this.#held.length >= http2.HEAD_BYTES) {
      const size = http2.HEAD_BYTES + this.#held.readUIntBE(0, 3);
      if (this.#held.length < size) return;
      this.#hear(this.#held.subarray(0, size));
      this.#held = this.#held.subarray(size);
    }
  }

  #hear(frame: Buffer): void {
    const [type, flags, id] = [frame.readUInt8(3), frame.readUInt8(4), frame.readUInt32BE(5)];
    const payload = frame.subarray(http2.HEAD_BYTES);
    if (type === http2.WINDOW_UPDATE) this.heard(id).granted += payload.readUInt32BE();
    if (id === 0) return void this.others.push({ type, flags, payload: Buffer.from(payload) });
    const stream = this.heard(id);
    if (type === http2.DATA) stream.take(payload, this.#isGrpc);
    else if (type === http2.HEADERS) stream.fields.push(...this.#decoder.decode(payload));
    else if (type === http2.RST_STREAM) stream.resetBy = payload.readUInt32BE();
    const mayEnd = type === http2.DATA || type === http2.HEADERS;
    if (mayEnd && (flags & http2.END_STREAM) !== 0) stream.isOver = true;
  }
}

interface FrameKind extends Pick<Http2Kind, "security" | "isGrpc"> {
  /** Shown in the handshake of TLS. */
  readonly serverName?: string;
}

/** Nothing was said yet. */
export async function openFrames(
  { security, isGrpc, serverName = "" }: FrameKind,
  port: number,
): Promise<FrameClient> {
  const where = { port, host: "127.0.0.1", noDelay: true };
  const options = { ...where, rejectUnauthorized: false, ALPNProtocols: ["h2"], servername: serverName };
  const socket =
    security === "tls" ? connectTls(options) : connect({ ...where, allowHalfOpen: security === "reality" });
  socket.on("error", () => {});
  await once(socket, security === "tls" ? "secureConnect" : "connect");
  return new FrameClient(security === "reality" ? await dialReality(socket) : socket, socket, isGrpc);
}

export async function framesTo(kind: FrameKind, port: number): Promise<FrameClient> {
  const client = await openFrames(kind, port);
  client.begin();
  return client;
}
