import type { Duplex } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import type { WebSocketFrame } from "#core/wire-state.ts";
import { CodecStream, type StreamCodec } from "#net/stream/codec-stream.ts";
import { DeferredStream } from "#transport/deferred-stream.ts";
import { decodeHead, readHead } from "#transport/http-head.ts";
import { WebSocketCodec } from "./codec.ts";
import { encodeEarlyData } from "./early-data.ts";
import { END_AFTER_SILENCE_MS } from "./frames.ts";
import { Upgrade } from "./upgrade.ts";

export interface WebSocketClientOptions {
  /** With its query, without `ed`. */
  readonly path: string;
  readonly host: string;
  /** Extra header fields; `Host` among them is ignored, it is `host`. */
  readonly headers: Readonly<Record<string, string>>;
  /** How many first bytes may travel in the request; 0: none, and the answer is awaited before anything is sent. */
  readonly earlyDataBytes: number;
  /** The field that carries them; empty: they are appended to the path. */
  readonly earlyDataHeader: string;
}

const ANSWER_TIMEOUT_MS = 30_000;
/** How long the request waits for first bytes before it goes without them. */
const EARLY_DATA_WAIT_MS = 200;
/** Pongs wait in the socket's own queue; past this many waiting bytes they are dropped, not queued. */
const MAX_WAITING_REPLY_BYTES = 65_536;

/** Owns the stream from here. Throws `ProtocolError` where the server does not switch protocols. */
export async function openWebSocketClient(
  wire: Duplex,
  options: WebSocketClientOptions,
  signal: AbortSignal,
): Promise<Duplex> {
  if (options.earlyDataBytes > 0)
    return new DeferredStream(async (first) => {
      const early = first.subarray(0, options.earlyDataBytes);
      await handshake(wire, options, early, AbortSignal.timeout(ANSWER_TIMEOUT_MS));
      return { stream: framed(wire, "client"), rest: first.subarray(early.length) };
    }, EARLY_DATA_WAIT_MS).on("close", () => wire.destroy());
  await handshake(wire, options, null, signal);
  return framed(wire, "client");
}

/** `within`: where another reader has stopped. */
export function framed(
  wire: Duplex,
  role: "client" | "server",
  within: WebSocketFrame | null = null,
): CodecStream {
  const reply = (frame: Buffer): void => {
    if (wire.writableLength < MAX_WAITING_REPLY_BYTES && wire.writable) wire.write(frame);
  };
  const codec = new WebSocketCodec(role, reply, within);
  return new CodecStream(wire, codec, role === "client" ? { endAfterSilenceMs: END_AFTER_SILENCE_MS } : {});
}

async function handshake(
  wire: Duplex,
  options: WebSocketClientOptions,
  early: Buffer | null,
  signal: AbortSignal,
): Promise<void> {
  const upgrade = new Upgrade(options, true);
  wire.on("error", () => wire.destroy());
  try {
    wire.write(requestHead(upgrade, options, early === null ? "" : encodeEarlyData(early)));
    upgrade.expect(await readHead(wire, ANSWER_TIMEOUT_MS, signal));
  } catch (error) {
    wire.destroy();
    throw error;
  }
}

function requestHead(
  upgrade: Upgrade,
  { path, earlyDataHeader }: WebSocketClientOptions,
  early: string,
): Buffer {
  if (early === "") return upgrade.head();
  return earlyDataHeader === ""
    ? upgrade.head(`${path}${early}`)
    : upgrade.head(path, [[earlyDataHeader, early]]);
}

export interface HttpUpgradeOptions extends Pick<WebSocketClientOptions, "path" | "host" | "headers"> {
  /** Send payload without waiting for the answer. */
  readonly fastOpen: boolean;
}

/** An HTTP upgrade that leads to the bare stream, without frames. Owns the stream from here. */
export async function openHttpUpgradeClient(
  wire: Duplex,
  options: HttpUpgradeOptions,
  signal: AbortSignal,
): Promise<Duplex> {
  const upgrade = new Upgrade(options, false);
  wire.on("error", () => wire.destroy());
  try {
    wire.write(upgrade.head());
    if (options.fastOpen) return new CodecStream(wire, new LateAnswer(upgrade));
    upgrade.expect(await readHead(wire, ANSWER_TIMEOUT_MS, signal));
    return wire;
  } catch (error) {
    wire.destroy();
    throw error;
  }
}

/** Passes everything through except the response head, which it removes from the front. */
class LateAnswer implements StreamCodec {
  readonly #upgrade: Upgrade;
  #waiting: Buffer | null = Buffer.alloc(0);

  constructor(upgrade: Upgrade) {
    this.#upgrade = upgrade;
  }

  get bare(): boolean {
    return this.#waiting === null;
  }

  seal(plain: Buffer): Buffer {
    return plain;
  }

  sealEnd(): null {
    return null;
  }

  open(wire: Buffer, emit: (plain: Buffer) => void): void {
    if (this.#waiting === null) return emit(wire);
    const bytes = Buffer.concat([this.#waiting, wire]);
    const decoded = decodeHead(bytes, this.#waiting.length);
    this.#waiting = decoded === null ? bytes : null;
    if (decoded === null) return;
    this.#upgrade.expect(decoded.value);
    if (decoded.size < bytes.length) emit(bytes.subarray(decoded.size));
  }

  openEnd(): void {
    if (this.#waiting !== null) throw new ProtocolError("the server closed the connection without an answer");
  }
}
