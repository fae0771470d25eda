import { createHash, randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import { CodecStream, type StreamCodec } from "#net/stream/codec-stream.ts";
import { DeferredStream } from "#transport/deferred-stream.ts";
import { decodeHead, encodeHead, type HttpHead, readHead } from "#transport/http-head.ts";
import { WebSocketCodec } from "./codec.ts";
import { encodeEarlyData } from "./early-data.ts";
import { END_AFTER_SILENCE_MS } from "./frames.ts";

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
const USER_AGENT =
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/136.0.0.0 Safari/537.36";
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

export function framed(wire: Duplex, role: "client" | "server"): CodecStream {
  const reply = (frame: Buffer): void => {
    if (wire.writableLength < MAX_WAITING_REPLY_BYTES && wire.writable) wire.write(frame);
  };
  const codec = new WebSocketCodec(role, reply);
  return new CodecStream(wire, codec, role === "client" ? { endAfterSilenceMs: END_AFTER_SILENCE_MS } : {});
}

async function handshake(
  wire: Duplex,
  options: WebSocketClientOptions,
  early: Buffer | null,
  signal: AbortSignal,
): Promise<void> {
  const key = randomBytes(16).toString("base64");
  wire.on("error", () => wire.destroy());
  try {
    wire.write(requestHead(options, key, early === null ? "" : encodeEarlyData(early)));
    const answer = await readHead(wire, ANSWER_TIMEOUT_MS, signal);
    expectSwitch(answer);
    if (answer.fields.get("sec-websocket-accept") !== acceptOf(key))
      throw new ProtocolError("the WebSocket server answered for another key");
  } catch (error) {
    wire.destroy();
    throw error;
  }
}

function requestHead(options: WebSocketClientOptions, key: string, early: string): Buffer {
  const { earlyDataHeader } = options;
  const path = early !== "" && earlyDataHeader === "" ? `${options.path}${early}` : options.path;
  const fields = new Map([
    ...upgradeFields(options),
    ["Sec-WebSocket-Version", "13"],
    ["Sec-WebSocket-Key", key],
  ]);
  if (early !== "" && earlyDataHeader !== "") fields.set(earlyDataHeader, early);
  return encodeHead(`GET ${path} HTTP/1.1`, fields);
}

function upgradeFields({
  host,
  headers,
}: Pick<WebSocketClientOptions, "host" | "headers">): [string, string][] {
  const own = Object.entries(headers).filter(([name]) => name.toLowerCase() !== "host");
  const named = own.some(([name]) => name.toLowerCase() === "user-agent");
  return [
    ["Host", host],
    ...(named ? [] : [["User-Agent", USER_AGENT] satisfies [string, string]]),
    ...own,
    ["Connection", "Upgrade"],
    ["Upgrade", "websocket"],
  ];
}

/** RFC 6455 §4.2.2: base64(SHA-1(key + GUID)). */
export function acceptOf(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

function expectSwitch({ start, fields }: HttpHead): void {
  if (!/^HTTP\/1\.[01] 101( |$)/.test(start))
    throw new ProtocolError(`the server did not switch protocols: ${start.slice(0, 60)}`);
  if (fields.get("upgrade")?.toLowerCase() !== "websocket")
    throw new ProtocolError("the server switched to something else than WebSocket");
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
  wire.on("error", () => wire.destroy());
  wire.write(encodeHead(`GET ${options.path} HTTP/1.1`, upgradeFields(options)));
  if (options.fastOpen) return new CodecStream(wire, new LateAnswer());
  try {
    expectSwitch(await readHead(wire, ANSWER_TIMEOUT_MS, signal));
    return wire;
  } catch (error) {
    wire.destroy();
    throw error;
  }
}

/** Passes everything through except the response head, which it removes from the front. */
class LateAnswer implements StreamCodec {
  #waiting: Buffer | null = Buffer.alloc(0);

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
    expectSwitch(decoded.value);
    if (decoded.size < bytes.length) emit(bytes.subarray(decoded.size));
  }

  openEnd(): void {
    if (this.#waiting !== null) throw new ProtocolError("the server closed the connection without an answer");
  }
}
