/** simple-obfs, mode http: a WebSocket upgrade that never was, once in each direction, then the bytes as they are. */
import { randomBytes, randomInt } from "node:crypto";
import { ProtocolError } from "#core/errors.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";

/** More head than any of these servers sends. */
const MAX_HEAD_BYTES = 16 * 1024;
const END = Buffer.from("\r\n\r\n");

/** `host` as it goes into the Host header, with `:port` where the port is not 80. */
export function obfsHttpClient(host: string, path = "/"): StreamCodec {
  let opened = false;
  const arrived = new ByteQueue();
  let headDone = false;
  const head = (payloadBytes: number) => Buffer.from(requestHead(host, path, payloadBytes));
  return {
    seal(plain) {
      if (opened) return plain;
      opened = true;
      return Buffer.concat([head(plain.length), plain]);
    },
    sealEnd: () => (opened ? null : head(0)),
    open(wire, emit) {
      if (headDone) return emit(wire);
      arrived.push(wire);
      const rest = behindHead(arrived);
      if (rest === null) return;
      headDone = true;
      if (rest.length > 0) emit(rest);
    },
    openEnd() {
      if (!headDone && arrived.length > 0) throw new ProtocolError("the obfs server's head ended early");
    },
  };
}

function requestHead(host: string, path: string, payloadBytes: number): string {
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: ${host}`,
    `User-Agent: curl/7.${randomInt(54)}.${randomInt(2)}`,
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Key: ${randomBytes(16).toString("base64url")}==`,
    `Content-Length: ${payloadBytes}`,
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** What follows the head; null while its end has not come. */
function behindHead(arrived: ByteQueue): Buffer | null {
  const bytes = arrived.peekUpTo(MAX_HEAD_BYTES);
  const end = bytes.indexOf(END);
  if (end < 0) {
    if (bytes.length === MAX_HEAD_BYTES) throw new ProtocolError("the obfs server's head does not end");
    return null;
  }
  arrived.skip(end + END.length);
  return arrived.takeAll();
}
