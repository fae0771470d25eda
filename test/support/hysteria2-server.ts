/** A hysteria2 server on loopback, as far as tests of the client need one: it takes every password and answers as it is told. */
import assert from "node:assert/strict";
import { encodeFields } from "#transport/http3/qpack.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { openQuicServer, type QuicServer } from "./quic-server.ts";

const HEADERS_FRAME = 0x01;

/** `answer`: the bytes that a stream for a destination gets. */
export function openHysteria2Server(answer: Uint8Array): Promise<QuicServer> {
  return openQuicServer({ alpn: "h3", onStream: (stream) => serve(stream, answer) });
}

/** The first bytes tell an HTTP/3 request, which is to be authenticated, from a destination. */
function serve(stream: QuicStream, answer: Uint8Array): void {
  stream.on("error", () => {});
  if (stream.send === null) return void stream.resume();
  stream.once("data", (first: Buffer) => {
    if (first[0] !== HEADERS_FRAME) return stream.write(answer);
    const section = encodeFields([
      [":status", "233"],
      ["hysteria-udp", "true"],
      ["hysteria-cc-rx", "auto"],
    ]);
    assert.ok(section.length < 64);
    stream.end(Buffer.concat([Buffer.of(HEADERS_FRAME, section.length), section]));
  });
  stream.on("end", () => stream.end());
}
