/** Our client and our listener over torn wires; behind the listener everything is sent back. */
import { createServer } from "node:http";
import type { Socket } from "node:net";
import { type Duplex, duplexPair, pipeline } from "node:stream";
import type { Accept, Inbound, InboundEnv, ListenOptions } from "#core/inbound.ts";
import type { DialContext, Dialer, Outbound } from "#core/outbound.ts";
import type { Protocol } from "#core/protocol.ts";
import type { DatagramFlow, Destination, Endpoint } from "#core/session.ts";
import { LOOPBACK_V4, toDestination } from "#net/address/ip.ts";
import { acceptedSocket } from "./accepted.ts";
import { inbox } from "./client.ts";
import { openInboundEnv } from "./inbound-env.ts";
import { openListenerTls } from "./listener-tls.ts";
import { openClient } from "./protocol-pair.ts";
import { type Tear, tornWire } from "./torn-wire.ts";

export interface TornRow {
  readonly name: string;
  readonly server: Protocol;
  readonly serverOptions: Readonly<Record<string, unknown>>;
  readonly client: Protocol;
  readonly clientOptions: Readonly<Record<string, unknown>>;
  /** A datagram to this place in place of a stream. */
  readonly datagrams?: Destination;
  /** A stream to this place in place of the usual one. */
  readonly streamTo?: Destination;
  /** Behind the listener is a web server that answers with what it got, or with `PAYLOAD` where it got nothing. */
  readonly web?: true;
  /** TLS, with these protocols in ALPN, is taken off before the wire that tears: the listener sees what was inside. */
  readonly underTls?: readonly string[];
  /** The listener's bytes would fit any client: no key, number or time of the request is in them. */
  readonly answersAlone?: true;
  /** TLS or keys of one connection on the wire, or several wires: the same bytes at once are not the same session. */
  readonly unrepeatable?: true;
  /** How far places that are torn lie apart; absent: every byte. */
  readonly step?: number;
}

export interface Spoken {
  /** What came back to the client, or why nothing did. */
  readonly result: Buffer | Error;
  /** What the listener was asked for. */
  readonly asked: readonly Destination[];
}

export interface TornPeers extends AsyncDisposable {
  /** One session with a client of its own; resolves when every connection is closed on both sides. */
  converse(up: Tear, down: Tear, onAnswer?: () => void): Promise<Spoken>;
  /** Gives `bytes` to the listener in one piece, and the end when it asked for something; resolves when it has closed. */
  replay(bytes: Buffer): Promise<readonly Destination[]>;
  /** A connection with a server that answers the client's first bytes with all of `bytes`. */
  listenTo(bytes: Buffer): Promise<Buffer | Error>;
}

/** Where a row's client wants to go. */
export const wantedBy = ({ datagrams, streamTo }: TornRow): Destination =>
  datagrams ?? streamTo ?? DESTINATION;

export const DESTINATION = toDestination("origin.test", 443);
export const PAYLOAD = Buffer.from("forty bytes that go there and come back.");
/** Answers come from an address. */
const SOURCE = toDestination("192.0.2.7", 443);
const LISTENER: Endpoint = { ip: LOOPBACK_V4, port: 443 };
const DEADLINE_MS = 15_000;

export async function openTornPeers(row: TornRow): Promise<TornPeers> {
  const asked = new Map<number, Destination[]>();
  const onAsked = new Map<number, () => void>();
  const accept: Accept = (session) => {
    const { source, destination } = session.metadata;
    asked.get(source.port)?.push(destination);
    onAsked.get(source.port)?.();
    if (session.network === "udp") return sendBack(session.flow);
    session.stream.on("error", () => {});
    session.reply(null);
    if (row.web === true) return void web.emit("connection", session.stream);
    if (session.stream.readableEnded) session.stream.end();
    else session.stream.pipe(session.stream);
  };
  const { inbound, enter } = await openListener(row, accept);
  const outer = row.underTls === undefined ? null : await openTlsPeeler(row.underTls);
  const link = (near: Duplex): Duplex => outer?.(near) ?? near;
  let connections = 0;
  const watched = <T>(port: number, wires: readonly Duplex[], result: T) =>
    closed(wires).then(() => ({ result, asked: asked.get(port) ?? [] }));
  const begin = (): number => {
    asked.set(++connections, []);
    return connections;
  };
  return {
    async converse(up, down, onAnswer = () => {}) {
      const port = begin();
      const wires: Duplex[] = [];
      const result = await speak(
        row,
        async () => {
          const [near, far] = tornWire(up, down, port);
          wires.push(near, far);
          enter(far);
          return link(near);
        },
        onAnswer,
      );
      return await watched(port, wires, result);
    },
    async replay(bytes) {
      const port = begin();
      const [near, far] = tornWire({}, {}, port);
      enter(far);
      near
        .on("error", () => {})
        .on("end", () => near.destroy())
        .resume();
      onAsked.set(port, () => near.end());
      near.write(bytes);
      await closed([near, far]);
      return asked.get(port) ?? [];
    },
    async listenTo(bytes) {
      const wires: Duplex[] = [];
      const result = await speak(
        row,
        async () => {
          const [near, far] = tornWire({}, {}, 1);
          wires.push(near, far);
          far.on("error", () => {}).once("data", () => far.end(bytes));
          far.on("end", () => far.destroy()).resume();
          return link(near);
        },
        () => {},
      );
      await closed(wires);
      return result;
    },
    [Symbol.asyncDispose]: () => inbound[Symbol.asyncDispose](),
  };
}

const web = createServer((request, response) => {
  if (request.method === "GET") return void response.end(PAYLOAD);
  const length = request.headers["content-length"];
  response.writeHead(200, length === undefined ? {} : { "content-length": length });
  request.pipe(response);
});

function sendBack(flow: DatagramFlow): void {
  flow.receive(({ payload }) => flow.send({ payload, destination: SOURCE }));
  void flow.closed.then(() => flow[Symbol.asyncDispose]());
}

async function openListener(
  { server, serverOptions }: TornRow,
  accept: Accept,
): Promise<{ readonly inbound: Inbound; readonly enter: (wire: Duplex) => void }> {
  let on: ListenOptions["onAccepted"] = () => {};
  const env: InboundEnv = {
    ...openInboundEnv({ accept }),
    async listenTcp({ onAccepted }) {
      on = onAccepted;
      return [LISTENER];
    },
  };
  const side = server.inbound as NonNullable<Protocol["inbound"]>;
  const inbound = await side.open(side.schema.parse(serverOptions) as never, env);
  return { inbound, enter: (wire) => on(acceptedSocket(wire as Socket), LISTENER) };
}

/** Makes a stream on which a client speaks TLS, and whose plain bytes pass through the given one. */
async function openTlsPeeler(alpn: readonly string[]): Promise<(inner: Duplex) => Duplex> {
  const server = await openListenerTls(null, alpn); // what it accepts is no kernel socket
  return (inner) => {
    const [client, far] = duplexPair();
    client.on("error", () => {});
    inner.on("error", () => {});
    server.accept(far).then(
      ({ stream }) => void pipeline(stream, inner, stream, () => {}),
      () => inner.destroy(),
    );
    return client;
  };
}

async function speak(
  row: TornRow,
  dial: () => Promise<Duplex>,
  onAnswer: () => void,
): Promise<Buffer | Error> {
  const associate = () => Promise.reject(new Error("nothing here is sent by UDP"));
  const dialer: Dialer = { connect: dial, associate };
  const options = { server: "192.0.2.1", port: 443, ...row.clientOptions };
  const outbound = await openClient(row.client, options, { dialer });
  const context = { signal: AbortSignal.timeout(DEADLINE_MS), metadata: null };
  try {
    const say = row.datagrams === undefined ? sayAll : sendOne;
    const work = say(outbound, context, wantedBy(row), onAnswer);
    return await withDeadline(work, "nothing came back");
  } catch (error) {
    return error as Error;
  } finally {
    await outbound[Symbol.asyncDispose]();
  }
}

/** What comes back, until it is as long as what was sent. */
async function sayAll(
  outbound: Outbound,
  context: DialContext,
  destination: Destination,
  onAnswer: () => void,
): Promise<Buffer> {
  const stream = await outbound.connect(destination, context);
  let back: Buffer = Buffer.alloc(0);
  const settled = Promise.withResolvers<void>();
  stream.on("data", (bytes: Buffer) => {
    back = Buffer.concat([back, bytes]);
    if (back.length >= PAYLOAD.length) settled.resolve();
  });
  stream.on("end", settled.resolve).on("close", settled.resolve).on("error", settled.reject);
  if (stream.readableEnded) settled.resolve();
  stream.write(PAYLOAD);
  try {
    await settled.promise;
    onAnswer();
  } finally {
    stream.on("error", () => {}).destroy();
  }
  return back;
}

async function sendOne(
  outbound: Outbound,
  context: DialContext,
  destination: Destination,
  onAnswer: () => void,
): Promise<Buffer> {
  await using flow = await outbound.associate(destination, context);
  const answer = inbox(flow).next();
  flow.send({ payload: PAYLOAD, destination });
  const first = await Promise.race([answer, flow.closed]);
  if (first === undefined) throw new Error("the flow closed without an answer");
  onAnswer();
  return Buffer.from(first.payload);
}

/** Fails where one of them is still open a good while later. */
async function closed(wires: readonly Duplex[]): Promise<void> {
  const open = wires.filter((wire) => !wire.closed);
  const all = Promise.all(open.map((wire) => new Promise<void>((done) => wire.once("close", done))));
  await withDeadline(all, "a connection is still open");
}

async function withDeadline<T>(work: Promise<T>, failure: string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`${failure} after ${DEADLINE_MS} ms`)), DEADLINE_MS);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
