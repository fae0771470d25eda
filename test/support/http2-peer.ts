/** A session of HTTP/2 to a node, whose server is in the test's own hands. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Http2Recipe } from "#core/wire-recipe.ts";
import { Http2ClientFraming } from "#dataplane/workers/wire/http2-client-framing.ts";
import { NodeMuxSession } from "#dataplane/workers/wire/node-mux-session.ts";
import { NodeMuxStream } from "#dataplane/workers/wire/node-mux-stream.ts";
import type { WireIo } from "#dataplane/workers/wire/wire.ts";
import { BUFFER_BYTES, EAGAIN, type RelayCalls } from "#platform/linux/relay-calls.ts";
import { BROKEN } from "#platform/linux/ssl.ts";
import * as http2 from "#transport/http2/frames.ts";
import { encodeSection } from "#transport/http2/hpack.ts";
import { MemoryWire } from "./memory-wire.ts";

const { DATA, GOAWAY, HEADERS, END_HEADERS } = http2;
export const NOTHING = Buffer.alloc(0);
export const REQUEST = [
  [":method", "POST"],
  [":scheme", "https"],
  [":authority", "server.test"],
  [":path", "/some/Tun"],
] as const;

interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
}

export const frame = http2.encodeFrame;
export const number = http2.encodeNumber;
export const settings = (...all: readonly (readonly [number, number])[]) => http2.encodeSettings(all);
export const section = (...fields: readonly (readonly [string, string])[]) => encodeSection(fields, false);
export const headers = (id: number, flags: number, ...fields: readonly (readonly [string, string])[]) =>
  frame(HEADERS, flags | END_HEADERS, id, section(...fields));
export const OK = [":status", "200"] as const;
export const data = (id: number, bytes: string | Uint8Array, flags = 0) =>
  frame(DATA, flags, id, Buffer.from(bytes));

/** A session with its server's side in the hands of the test. */
export class Peer {
  readonly wire = new MemoryWire(NOTHING);
  readonly io: WireIo;
  readonly framing: Http2ClientFraming;
  readonly session: NodeMuxSession;
  readonly woken: NodeMuxStream[] = [];
  #isFirst = true;

  constructor(recipe: Partial<Http2Recipe> = {}) {
    const calls = { buffer: new Uint8Array(BUFFER_BYTES + 64), receive: () => EAGAIN, unsent: () => 0 };
    this.io = { calls: calls as unknown as RelayCalls, bufferedBytes: 0, wakeAtMs: Infinity };
    const whole = {
      requests: [REQUEST],
      isGrpc: false,
      paddedReferer: null,
      maxStreams: 0,
      pingIntervalMs: 0,
      ...recipe,
    };
    this.framing = new Http2ClientFraming(whole);
    this.session = new NodeMuxSession(this.wire, this.framing, this.framing.encodePreface(), () => {});
  }

  open(): NodeMuxStream {
    const stream: NodeMuxStream = new NodeMuxStream(
      this.session,
      NOTHING,
      () => void this.woken.push(stream),
    );
    stream.begin(this.io);
    return stream;
  }

  /** The server says it; all turns that this takes. */
  says(...frames: readonly Uint8Array[]): void {
    this.wire.arrived = Buffer.concat([this.wire.arrived, ...frames]);
    this.turns();
  }

  turns(): void {
    let left: number;
    do {
      left = this.wire.arrived.length;
      this.session.turn(this.io);
    } while (this.wire.arrived.length < left);
  }

  /** What was said since. */
  heard(): readonly Frame[] {
    this.turns();
    let bytes = this.wire.sent;
    this.wire.sent = NOTHING;
    if (this.#isFirst) {
      assert.ok(bytes.subarray(0, 24).equals(http2.CLIENT_PREFACE));
      bytes = bytes.subarray(24);
      this.#isFirst = false;
    }
    const frames: Frame[] = [];
    while (bytes.length > 0) {
      const end = 9 + bytes.readUIntBE(0, 3);
      const [type, flags, id] = [bytes.readUInt8(3), bytes.readUInt8(4), bytes.readUInt32BE(5)];
      assert.ok(end <= 9 + 16_384 && end <= bytes.length);
      frames.push({ type, flags, id, payload: bytes.subarray(9, end) });
      bytes = bytes.subarray(end);
    }
    return frames;
  }

  /** Bytes of all data frames that were said since, heads of messages among them. */
  sent(id: number): number {
    const ofStream = this.heard().filter((one) => one.type === DATA && one.id === id);
    return ofStream.reduce((sum, { payload }) => sum + payload.length, 0);
  }

  /** What the stream takes of so many bytes. */
  write(stream: NodeMuxStream, size: number, byte = 1): number {
    let taken = 0;
    while (taken < size) {
      const piece = Math.min(size - taken, BUFFER_BYTES);
      this.io.calls.buffer.fill(byte, 0, piece);
      const bytes = stream.write(this.io, piece);
      if (bytes <= 0) break;
      taken += bytes;
      this.turns();
    }
    return taken;
  }

  read(stream: NodeMuxStream): { readonly text: string; readonly last: number } {
    const got: Buffer[] = [];
    for (;;) {
      const bytes = stream.read(this.io, 65_536);
      if (bytes <= 0) return { text: Buffer.concat(got).toString("latin1"), last: bytes };
      got.push(Buffer.from(this.io.calls.buffer.subarray(0, bytes)));
    }
  }

  /** It has ended the connection for a fault of the server, and no stream goes on. */
  hasRefused(...streams: readonly NodeMuxStream[]): void {
    const [last] = this.heard().filter(({ type }) => type === GOAWAY);
    assert.equal(last?.payload.readUInt32BE(4), http2.PROTOCOL_ERROR);
    assert.equal(this.session.isUsable, false);
    for (const stream of streams) assert.equal(this.read(stream).last, BROKEN);
  }
}

/** A peer with one stream, of which the server has heard. */
export function begun(recipe: Partial<Http2Recipe> = {}): {
  readonly peer: Peer;
  readonly stream: NodeMuxStream;
} {
  const peer = new Peer(recipe);
  const stream = peer.open();
  peer.heard();
  return { peer, stream };
}

/** Frames that end the connection. */
export function refuses(what: string, ...frames: readonly Uint8Array[]): void {
  void test(what, () => {
    const { peer, stream } = begun();
    peer.says(...frames);
    peer.hasRefused(stream);
  });
}

/** Of some types, since: the one number that each says, or its length. */
export const said = (peer: Peer, ...types: readonly number[]) =>
  peer
    .heard()
    .filter(({ type }) => types.includes(type))
    .map(({ type, id, payload }) => [
      type,
      id,
      payload.length === 4 ? payload.readUInt32BE() : payload.length,
    ]);
