/** A hysteria2 listener on loopback, its nodes, and visitors that speak HTTP/3 and know no password. */
import assert from "node:assert/strict";
import type { Duplex, Readable } from "node:stream";
import type { Dialer, Outbound } from "#core/outbound.ts";
import type { HostMemory } from "#core/host-memory.ts";
import type { Accept } from "#core/inbound.ts";
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { hysteria2 } from "#protocols/hysteria2/index.ts";
import { ByteQueue } from "#lib/byte-queue.ts";
import { decodeFields, type Field } from "#transport/http3/qpack.ts";
import {
  DATA_FRAME,
  encodeHeaders,
  HEADERS_FRAME,
  openControlStream,
  peekFrame,
} from "#transport/http3/request.ts";
import type { QuicClient } from "#transport/quic/client.ts";
import { openTestInbound, openTestOutbound, type OpenedInbound } from "./inbound-env.ts";
import { dialQuic } from "./quic-dial.ts";
import { quicCertificate } from "./quic-tls.ts";
import { literalsOnly } from "./resolvers.ts";

export const USERS = { ada: "letmein", bob: "or-me" };

export function openListener(
  accept: Accept,
  options: Readonly<Record<string, unknown>> = {},
  dialer?: Dialer,
  memory?: HostMemory,
): Promise<OpenedInbound> {
  const { cert, key } = quicCertificate;
  return openTestInbound(
    hysteria2,
    { users: USERS, certificate: cert, "private-key": key, ...options },
    { accept, memory, ...(dialer === undefined ? {} : { dialer }) },
  );
}

export function openNode(port: number, options: Readonly<Record<string, unknown>> = {}): Promise<Outbound> {
  const { fingerprint } = quicCertificate;
  return openTestOutbound(
    hysteria2,
    { server: "127.0.0.1", port, password: USERS.ada, sni: "server.test", fingerprint, ...options },
    openDirectDialer({ resolver: literalsOnly }),
  );
}

/** An HTTP/3 client without anything of hysteria2. */
export async function visit(port: number): Promise<QuicClient> {
  const client = await dialQuic(port);
  openControlStream(client.connection);
  return client;
}

export interface Answer {
  readonly fields: readonly Field[];
  readonly body: string;
}

/** `fields` besides those that every request has. */
export async function ask(
  client: QuicClient,
  path: string,
  { method = "GET", authority = "server.test", fields = [] as readonly Field[], body = "" } = {},
): Promise<Answer> {
  const stream = client.connection.open(true);
  assert.ok(stream !== null);
  stream.write(
    encodeHeaders([
      [":method", method],
      [":scheme", "https"],
      [":authority", authority],
      [":path", path],
      ...fields,
    ]),
  );
  if (body !== "") stream.write(Buffer.concat([Buffer.of(DATA_FRAME, body.length), Buffer.from(body)]));
  stream.end();
  return readAnswer(stream);
}

export async function readAnswer(stream: Readable | Duplex): Promise<Answer> {
  const arrived = new ByteQueue();
  for await (const chunk of stream) arrived.push(chunk as Buffer);
  let fields: readonly Field[] = [];
  const pieces: Buffer[] = [];
  for (let frame = peekFrame(arrived); frame !== null; frame = peekFrame(arrived)) {
    arrived.skip(frame.headBytes);
    const payload = arrived.take(frame.bytes);
    assert.ok(payload !== null, "a frame that is cut short");
    if (frame.type === HEADERS_FRAME) fields = decodeFields(payload);
    if (frame.type === DATA_FRAME) pieces.push(payload);
  }
  return { fields, body: Buffer.concat(pieces).toString() };
}
