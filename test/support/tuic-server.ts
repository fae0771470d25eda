/** A TUIC server on loopback, as far as tests of the client need one: it checks the token, and echoes. */
import assert from "node:assert/strict";
import { decodePacket } from "#protocols/tuic/wire.ts";
import type { Connection } from "#transport/quic/connection.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { openQuicServer, type QuicServer, type QuicServerOptions } from "./quic-server.ts";

export const TUIC_UUID = "b831381d-6324-4d53-ad4f-8cda48b30811";
export const TUIC_PASSWORD = "letmein";
const REFUSED = 0xfffffff1;

export interface TuicServer extends QuicServer {
  /** Commands of streams of one direction and of datagrams, in hex. */
  readonly commands: string[];
  /** Of every stream for a connection, what it asked for, in hex. */
  readonly asked: string[];
}

/** `refuses`: streams for connections are reset. */
export async function openTuicServer(
  refuses = false,
  limits: Pick<QuicServerOptions, "mostStreams"> = {},
): Promise<TuicServer> {
  const commands: string[] = [];
  const asked: string[] = [];
  const onCommand = (bytes: Buffer, connection: Connection, answer: (packet: Buffer) => void) => {
    commands.push(bytes.toString("hex"));
    if (bytes[1] === 0) return checkToken(bytes, connection);
    if (bytes[1] === 2 && decodePacket(bytes) !== null) answer(bytes);
  };
  const server = await openQuicServer({
    ...limits,
    alpn: "h3",
    onStream(stream, connection) {
      stream.on("error", () => {});
      if (stream.send !== null) return serve(stream, asked, refuses);
      const pieces: Buffer[] = [];
      stream.on("data", (piece: Buffer) => pieces.push(piece));
      stream.on("end", () =>
        onCommand(Buffer.concat(pieces), connection, (packet) => connection.open(false)?.end(packet)),
      );
    },
    onDatagram: (payload, connection) =>
      onCommand(Buffer.from(payload), connection, (packet) => connection.sendDatagram(packet)),
  });
  return Object.assign(server, { commands, asked });
}

function checkToken(command: Buffer, connection: Connection): void {
  const uuid = Buffer.from(TUIC_UUID.replaceAll("-", ""), "hex");
  const token = connection.exportKey(uuid, Buffer.from(TUIC_PASSWORD), 32);
  if (!command.subarray(2).equals(Buffer.concat([uuid, token]))) connection.close(REFUSED, "");
}

/** Echoes what follows the address, a name of up to 63 bytes. */
function serve(stream: QuicStream, asked: string[], refuses: boolean): void {
  stream.once("data", (first: Buffer) => {
    assert.equal(first[2], 0, "a name was expected");
    const size = 6 + (first[3] ?? 0);
    asked.push(first.subarray(0, size).toString("hex"));
    if (refuses) return stream.destroy(new Error("refused"));
    if (first.length > size) stream.write(first.subarray(size));
    stream.pipe(stream);
  });
}
