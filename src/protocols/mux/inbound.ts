import type { Duplex } from "node:stream";
import { DialError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { type DatagramFlow, type Destination, destinationText } from "#core/session.ts";
import { endWithReply } from "#net/listen/accept.ts";
import { readHandshake } from "#net/listen/read-handshake.ts";
import { StreamFlow } from "#protocols/udp-over-tcp/flow.ts";
import type { MuxServerOptions } from "#transport/mux/fields.ts";
import { serveMux } from "#transport/mux/open.ts";
import { MUX_COOL_DESTINATION, MUX_DESTINATION } from "#transport/mux/preface.ts";
import { REQUEST_TIMEOUT_MS } from "#transport/mux/session.ts";
import { encodeAnswer, type StreamRequest, takeStreamRequest } from "#transport/mux/request.ts";
import { datagramFraming, packetFraming } from "./packets.ts";

/** Asked for by clients with `brutal-opts`. */
const BRUTAL_HOST = "_brutalbwexchange";

export interface MuxContext {
  readonly options: MuxServerOptions | undefined;
  /** `tell` answers the client; only its first call counts. A failure ends the stream. */
  readonly onStream: (
    stream: Duplex,
    destination: Destination,
    reply: (failure: Error | null) => void,
  ) => void;
  readonly onFlow: (flow: DatagramFlow, first: Destination) => void;
  readonly log: Log;
}

export function isMux({ host }: Destination): boolean {
  return host === MUX_DESTINATION.host;
}

export function isMuxCool({ host }: Destination): boolean {
  return host === MUX_COOL_DESTINATION.host;
}

/** Serves a connection whose client asked for the mux name. Owns it; never throws. */
export function acceptMux(wire: Duplex, context: MuxContext): void {
  const { options, log } = context;
  serveMux(wire, {
    needsPadding: options?.padding === true,
    onStream: (stream) => void acceptOne(stream, context),
    onClosed() {},
    log,
  }).catch((error) => {
    log.debug(() => `mux: ${messageOf(error)}`);
    wire.destroy();
  });
}

async function acceptOne(stream: Duplex, context: MuxContext): Promise<void> {
  try {
    const request = await readHandshake(stream, takeStreamRequest, REQUEST_TIMEOUT_MS);
    if (serveOther(request, () => stream, context)) return;
    context.onStream(stream, request.destination, (failure) => answer(stream, failure));
  } catch (error) {
    context.log.debug(() => `mux: ${messageOf(error)}`);
    stream.destroy();
  }
}

/** What asks for no stream of bytes. False: it does. */
export function serveOther(
  { kind, destination }: StreamRequest,
  streamOf: () => Duplex,
  { log, onFlow }: Pick<MuxContext, "log" | "onFlow">,
): boolean {
  log.debug(() => `mux: ${kind} for ${destinationText(destination)}`);
  const isBrutal = destination.host === BRUTAL_HOST;
  if (!isBrutal && kind === "stream") return false;
  const stream = streamOf();
  if (isBrutal) refuse(stream, "TCP Brutal is not available here");
  else {
    stream.write(encodeAnswer(null));
    const framing = kind === "packets" ? packetFraming("ip") : datagramFraming(destination);
    onFlow(new StreamFlow(stream, framing), destination);
  }
  return true;
}

function answer(stream: Duplex, failure: Error | null): void {
  if (failure === null) stream.write(encodeAnswer(null));
  else refuseDial(stream, failure);
}

/** A short word: the client must not learn about the network behind this server. */
export function refuseDial(stream: Duplex, failure: Error): void {
  refuse(stream, failure instanceof DialError ? failure.reason : "failed");
}

function refuse(stream: Duplex, why: string): void {
  endWithReply(stream, encodeAnswer(why));
}
