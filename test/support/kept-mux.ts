/** A Trojan listener whose sessions of smux and yamux workers keep, and clients of it. */
import { once } from "node:events";
import type { Duplex } from "node:stream";
import { connect } from "node:tls";
import { ByteQueue } from "#lib/byte-queue.ts";
import { toDestination } from "#net/address/ip.ts";
import { trojan } from "#protocols/trojan/index.ts";
import { COMMAND_CONNECT, encodeRequest, keyOf } from "#protocols/trojan/wire.ts";
import { encodePreface, MUX_DESTINATION } from "#transport/mux/preface.ts";
import { encodeStreamRequest, type StreamRequest } from "#transport/mux/request.ts";
import { makeCertificate } from "./certificate.ts";
import { type KeptClients, openKeptClients } from "./kept-clients.ts";
import { type MuxFrames, muxFramesOver, TONGUES } from "./mux-frames.ts";
import { openClient } from "./protocol-pair.ts";

export type MuxName = keyof typeof TONGUES;

const certificate = makeCertificate({ names: ["server.test"] });
const SERVER = {
  users: [
    { username: "ann", password: "letmein" },
    { username: "bob", password: "other" },
  ],
  certificate: certificate.cert,
  "private-key": certificate.key,
};

/** What proves a user by this password, and asks for a session. */
export const greetingOf = (protocol: MuxName, password = "letmein", padding = false): Buffer =>
  Buffer.concat([
    encodeRequest(keyOf(password), { command: COMMAND_CONNECT, destination: MUX_DESTINATION }),
    encodePreface({ protocol, padding }),
  ]);

/** Its users are ann (`letmein`) and bob (`other`). */
export const openServer = (options: object = {}): Promise<KeptClients> =>
  openKeptClients(trojan, { ...SERVER, ...options });

/** A client of single frames. */
export interface MuxClient extends MuxFrames {
  readonly protocol: MuxName;
  /** With what it asks for. */
  open(id: number, port: number, kind?: StreamRequest["kind"]): void;
  /** The same, and says that it was answered. */
  opened(id: number, port: number): Promise<void>;
}

export async function openTls({ port }: Pick<KeptClients, "port">) {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
  socket.setNoDelay(true).on("error", () => {});
  await once(socket, "secureConnect");
  return socket;
}

export const requestFor = (port: number, kind: StreamRequest["kind"] = "stream"): Buffer =>
  encodeStreamRequest({ kind, destination: toDestination("127.0.0.1", port) });

export async function framesTo(
  server: Pick<KeptClients, "port">,
  protocol: MuxName,
  password?: string,
): Promise<MuxClient> {
  const socket = await openTls(server);
  const tongue = TONGUES[protocol];
  const frames = muxFramesOver(socket, new ByteQueue(), tongue, true);
  frames.send(greetingOf(protocol, password));
  const open: MuxClient["open"] = (id, port, kind) => {
    const request = requestFor(port, kind);
    frames.send(tongue.open(id), tongue.head(id, request.length), request);
  };
  return {
    ...frames,
    protocol,
    open,
    async opened(id, port) {
      open(id, port);
      const [status] = await frames.got(id, 1);
      if (status !== 0) throw new Error(`stream ${id} was answered ${status}`);
    },
  };
}

/** Our own client, of ann. */
export async function nodeOf({ port }: Pick<KeptClients, "port">, protocol: string, smux: object = {}) {
  const outbound = await openClient(trojan, {
    server: "127.0.0.1",
    port,
    password: "letmein",
    sni: "server.test",
    fingerprint: certificate.fingerprint,
    udp: true,
    smux: { enabled: true, protocol, "max-connections": 1, ...smux },
  });
  const context = () => ({ signal: AbortSignal.timeout(20_000), metadata: null });
  const connect = async (to: number): Promise<Duplex> => {
    const stream = await outbound.connect(toDestination("127.0.0.1", to), context());
    return stream.on("error", () => {});
  };
  return { outbound, connect, [Symbol.asyncDispose]: () => outbound[Symbol.asyncDispose]() };
}
