/** One request without a body over HTTP/3 (RFC 9114), for those who use nothing else of it. */
import { ProtocolError } from "#core/errors.ts";
import type { ByteQueue } from "#lib/byte-queue.ts";
import { readHandshake } from "#net/listen/read-handshake.ts";
import type { Connection } from "#transport/quic/connection.ts";
import type { ServedConnection } from "#transport/quic/server/served.ts";
import type { QuicStream } from "#transport/quic/streams/quic-stream.ts";
import { WireReader } from "#transport/quic/wire/reader.ts";
import { varintBytes, WireWriter } from "#transport/quic/wire/writer.ts";
import { decodeFields, encodeFields, type Field } from "./qpack.ts";

/** What streams that are destroyed say: H3_REQUEST_CANCELLED. */
export const REQUEST_CANCELLED = 0x10c;
export const NO_ERROR = 0x100;
export const GENERAL_PROTOCOL_ERROR = 0x101;

export const HEADERS_FRAME = 0x01;
export const DATA_FRAME = 0x00;
/** Type 0 (control), then an empty SETTINGS frame: no dynamic table, nothing special. */
const CONTROL_STREAM = Buffer.of(0x00, 0x04, 0x00);
/** Of a field section. */
export const MOST_FRAME_BYTES = 64 * 1024;

/** Our side of the connection (RFC 9114 §6.2.1). False: the peer allows no stream. */
export function openControlStream(connection: Pick<ServedConnection, "open">): boolean {
  const stream = connection.open(false);
  stream?.on("error", () => {});
  stream?.write(CONTROL_STREAM); // it never ends
  return stream !== null;
}

/** A stream that the peer has opened and that says nothing to us. */
export function discardStream(stream: QuicStream): void {
  stream.on("error", () => {});
  stream.resume();
  if (stream.send !== null) stream.end();
}

/** The fields of the answer. Throws `ProtocolError`, or what became of the connection. */
export async function request(
  connection: Connection,
  fields: readonly Field[],
  timeoutMs: number,
): Promise<readonly Field[]> {
  const stream = connection.open(true);
  if (stream === null) throw new ProtocolError("the server allows no request");
  stream.on("error", () => {}); // the reader hears of it itself
  stream.end(encodeHeaders(fields));
  const answer = await readHandshake(stream, takeHeaders, timeoutMs);
  stream.destroy();
  return answer;
}

/** A HEADERS frame. Names are in lower case. */
export function encodeHeaders(fields: readonly Field[]): Uint8Array {
  const section = encodeFields(fields);
  const out = new WireWriter(Buffer.alloc(1 + varintBytes(section.length) + section.length));
  out.varint(HEADERS_FRAME);
  out.varint(section.length);
  out.put(section);
  return out.bytes;
}

/** The first HEADERS frame; frames of other types in front of it are passed over. */
export function takeHeaders(arrived: ByteQueue): readonly Field[] | null {
  for (;;) {
    const frame = peekFrame(arrived);
    if (frame === null) return null;
    const { type, headBytes, bytes } = frame;
    if (type === DATA_FRAME) throw new ProtocolError("HTTP/3: a body before the answer");
    if (bytes > MOST_FRAME_BYTES) throw new ProtocolError("HTTP/3: a frame is too long");
    const whole = arrived.take(headBytes + bytes);
    if (whole === null) return null;
    if (type === HEADERS_FRAME) return decodeFields(whole.subarray(headBytes));
  }
}

/** What the next frame begins with; null: that has not come. */
export function peekFrame(arrived: ByteQueue): { type: number; headBytes: number; bytes: number } | null {
  const head = arrived.peek(Math.min(16, arrived.length));
  if (head === null || head.length === 0) return null;
  const typeBytes = 1 << ((head[0] ?? 0) >> 6);
  if (head.length <= typeBytes) return null;
  const headBytes = typeBytes + (1 << ((head[typeBytes] ?? 0) >> 6));
  if (head.length < headBytes) return null;
  const reader = new WireReader().reset(head);
  return { type: reader.varint(), bytes: reader.varint(), headBytes };
}
