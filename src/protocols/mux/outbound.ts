import type { Duplex } from "node:stream";
import { DialError } from "#core/errors.ts";
import type { DialContext, Outbound, OutboundEnv } from "#core/outbound.ts";
import { CodecStream } from "#net/codec-stream.ts";
import { StreamFlow } from "#protocols/udp-over-tcp/flow.ts";
import type { MuxClientOptions } from "#transport/mux/fields.ts";
import { MuxPool } from "#transport/mux/pool.ts";
import { MUX_DESTINATION } from "#transport/mux/preface.ts";
import { RequestCodec, type StreamRequest } from "#transport/mux/request.ts";
import { packetFraming } from "./packets.ts";

/** A stream's request waits this long for first bytes to travel with; then it goes alone. */
const OPEN_AFTER_MS = 20;

/** The node with `smux`: its conversations share connections that it opens itself. As it is where that is off. */
export function withMux(
  node: Outbound,
  options: MuxClientOptions | undefined,
  { log }: Pick<OutboundEnv, "log">,
): Outbound {
  if (options?.enabled !== true) return node;
  const pool = new MuxPool({
    protocol: options.protocol,
    padding: options.padding,
    maxConnections: options["max-connections"],
    minStreams: options["min-streams"],
    maxStreams: options["max-streams"],
    dial: (signal, metadata) => node.connect(MUX_DESTINATION, { signal, metadata }),
    log,
  });
  const open = async (request: StreamRequest, context: DialContext): Promise<Duplex> => {
    const codec = new RequestCodec(request); // throws for a name that is too long: before anything is dialled
    return new CodecStream(await pool.open(context), codec, { openAfterMs: OPEN_AFTER_MS });
  };
  return {
    ...node,
    connect: (destination, context) => open({ kind: "stream", destination }, context),
    async associate(destination, context) {
      if (!node.networks.has("udp"))
        throw new DialError("unsupported", `${node.name}: udp is not enabled for this proxy`);
      if (options["only-tcp"]) return await node.associate(destination, context);
      return new StreamFlow(await open({ kind: "packets", destination }, context), packetFraming("host"));
    },
    async [Symbol.asyncDispose]() {
      await pool[Symbol.asyncDispose]();
      await node[Symbol.asyncDispose]();
    },
  };
}
