/** Servers of VLESS over gRPC by Node's library: what they answer is a test's choice. */
import {
  performServerHandshake,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type Settings,
} from "node:http2";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { onEnd } from "#net/stream/late-end.ts";
import { toDestination } from "#net/address/ip.ts";
import { userIdBytes } from "#protocols/shared/user-id.ts";
import { ANSWER, COMMAND_TCP, encodeRequest } from "#protocols/vless/wire.ts";
import { GunCodec } from "#transport/grpc/codec.ts";
import { openTcpOrigin, type Origin } from "./origin.ts";
import { uuid } from "./tls-sides.ts";

/** Where clients of these servers say that they go. */
export const PORT = 9;
const id = Uint8Array.from(userIdBytes(uuid));
const destination = toDestination("127.0.0.1", PORT);
export const REQUEST = encodeRequest(id, { flow: "", command: COMMAND_TCP, destination });

export interface LibraryServer extends Origin {
  readonly sessions: readonly ServerHttp2Session[];
}

type Answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;

export async function openLibraryServer(settings: Settings, answer: Answer): Promise<LibraryServer> {
  const sessions: ServerHttp2Session[] = [];
  const origin = await openTcpOrigin((socket: Socket) => {
    const session = performServerHandshake(socket, { settings });
    sessions.push(session);
    onEnd(socket, () => session.destroy());
    socket.on("close", () => session.destroy());
    session
      .on("error", () => {})
      .on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
        stream.on("error", () => {});
        answer(stream, headers);
      });
  });
  return { ...origin, sessions };
}

/** What is inside of the tunnel is sent back, the end too. */
export function answerByEcho(stream: ServerHttp2Stream): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  const tunnel: Duplex = new CodecStream(stream, new GunCodec());
  tunnel.on("error", () => {});
  let left = REQUEST.length;
  tunnel.on("data", (bytes: Buffer) => {
    const from = Math.min(left, bytes.length);
    left -= from;
    if (left === 0 && from > 0) tunnel.write(ANSWER);
    if (bytes.length > from && !tunnel.write(bytes.subarray(from)))
      tunnel.pause().once("drain", () => tunnel.resume());
  });
  tunnel.on("end", () => tunnel.end());
}
