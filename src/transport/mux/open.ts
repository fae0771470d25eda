import type { Duplex } from "node:stream";
import { ProtocolError } from "#core/errors.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { readHandshake } from "#net/listen/read-handshake.ts";
import { H2Client, serveH2 } from "./h2mux.ts";
import { PaddingCodec } from "./padding.ts";
import { encodePreface, type Preface, takePreface } from "./preface.ts";
import type { MuxEvents, OpenMuxSession } from "./session.ts";
import { SmuxSession } from "./smux.ts";
import { YamuxSession } from "./yamux.ts";

const PREFACE_TIMEOUT_MS = 60_000;

/** A client's session over a connection that leads to `MUX_DESTINATION`; it owns the connection. */
export function openMuxClient(wire: Duplex, preface: Preface, events: MuxEvents): OpenMuxSession {
  const opening = encodePreface(preface);
  wire.on("error", () => wire.destroy());
  if (!preface.padding) wire.write(opening);
  const below = preface.padding ? new CodecStream(wire, new PaddingCodec(opening)) : wire;
  if (preface.protocol === "h2mux") return new H2Client(below, events);
  return preface.protocol === "smux" ? new SmuxSession(below, events) : new YamuxSession(below, events);
}

export interface MuxServerEvents extends MuxEvents {
  readonly onStream: (stream: Duplex) => void;
  /** Refuse clients that do not pad. */
  readonly needsPadding: boolean;
}

/**
 * Serves a connection whose request named `MUX_DESTINATION`. Owns the connection and ends all its streams with it.
 * Rejects with `ProtocolError` when the preface is not sing-mux; the connection is still usable then.
 */
export async function serveMux(wire: Duplex, events: MuxServerEvents): Promise<void> {
  const { protocol, padding } = await readHandshake(wire, takePreface, PREFACE_TIMEOUT_MS);
  if (events.needsPadding && !padding)
    throw new ProtocolError("a mux client without padding, which mux-option asks for");
  const below = padding ? new CodecStream(wire, new PaddingCodec()) : wire;
  below.on("error", () => below.destroy());
  if (protocol === "h2mux") serveH2(below, events);
  else if (protocol === "smux") new SmuxSession(below, events);
  else new YamuxSession(below, events);
}
