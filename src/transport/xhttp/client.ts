import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import { asError } from "#core/errors.ts";
import type { DialContext } from "#core/outbound.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { PlainCodec } from "#transport/http2/plain-codec.ts";
import type { HttpClient } from "#transport/http-client.ts";
import { MessagePair } from "#transport/message-pair.ts";
import { PacketUpStream } from "./packet-up.ts";
import { requestOf, streamedRequest, type XhttpClientOptions } from "./requests.ts";

/** The dial's signal no longer applies after the dial; posts have this timeout instead, up to the end of their answers. */
const POST_TIMEOUT_MS = 60_000;

/** Throws `DialError`. */
export async function openXhttpStream(
  http: HttpClient,
  options: XhttpClientOptions,
  context: DialContext,
): Promise<Duplex> {
  const { mode } = options;
  const streamed = (suffix: string) => http.open(streamedRequest(options, suffix), context);
  if (mode === "stream-one") return new CodecStream(await streamed(""), new PlainCodec());
  const session = randomUUID();
  const down = await http.open(requestOf(options, { method: "GET", suffix: session, body: null }), context);
  if (mode === "stream-up") {
    const up = await streamed(session).catch((error) => {
      down.destroy();
      throw error;
    });
    up.resume(); // filler
    return new MessagePair(up, down);
  }
  let sequence = 0;
  const post = async (body: Buffer, stop: AbortSignal): Promise<void> => {
    const signal = AbortSignal.any([AbortSignal.timeout(POST_TIMEOUT_MS), stop]);
    const request = requestOf(options, { method: "POST", suffix: `${session}/${sequence++}`, body });
    await answered(await http.open(request, { signal, metadata: context.metadata }), signal);
  };
  return new PacketUpStream(down, post, options);
}

function answered(exchange: Duplex, signal: AbortSignal): Promise<void> {
  const giveUp = (): void => void exchange.destroy(asError(signal.reason));
  signal.addEventListener("abort", giveUp, { once: true });
  exchange.once("close", () => signal.removeEventListener("abort", giveUp));
  if (signal.aborted) giveUp();
  return new Promise((resolve, reject) => {
    exchange.on("error", reject);
    exchange.on("close", () => reject(new Error("the server gave no answer to a post")));
    exchange.on("end", resolve);
    exchange.resume();
  });
}
