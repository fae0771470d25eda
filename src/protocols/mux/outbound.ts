import type { Duplex } from "node:stream";
import { DialError } from "#core/errors.ts";
import {
  BOTH_NETWORKS,
  type DialContext,
  type Dialer,
  type Outbound,
  type OutboundEnv,
} from "#core/outbound.ts";
import type { Metadata } from "#core/session.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { StreamFlow } from "#protocols/udp-over-tcp/flow.ts";
import type { MuxClientOptions } from "#transport/mux/fields.ts";
import { openMuxClient } from "#transport/mux/open.ts";
import { MuxPool } from "#transport/mux/pool.ts";
import { MUX_COOL, MUX_COOL_DESTINATION, MUX_DESTINATION } from "#transport/mux/preface.ts";
import { RequestCodec, type StreamRequest } from "#transport/mux/request.ts";
import { CoolClient } from "./cool-client.ts";
import { CoolFlow } from "./cool-flow.ts";
import { packetFraming } from "./packets.ts";
import { type SharedByWorkers, sharedByWorkers } from "./worker-dials.ts";

/** A stream's request waits this long for first bytes to travel with; then it goes alone. */
const OPEN_AFTER_MS = 20;

/** Opens a connection that is to carry mux.cool. */
export type DialCool = (context: DialContext) => Promise<Duplex>;

/**
 * The node with `smux`: its sessions share connections that it opens itself. Unchanged where `smux` is off. `dialCool`:
 * how the node asks for mux.cool; absent: by its name, as servers without a command for it understand it.
 */
export function withMux(
  node: Outbound,
  options: MuxClientOptions | undefined,
  env: Pick<OutboundEnv, "log" | "nowMs">,
  dialCool: DialCool = (context) => node.connect(MUX_COOL_DESTINATION, context),
): Outbound {
  if (options?.enabled !== true) return node;
  const { log } = env;
  const { protocol, padding } = options;
  const byWorkers = sharedByWorkers(node, options, env);
  const bounds = boundsOf(options);
  if (protocol === MUX_COOL) {
    const start = (wire: Duplex, onClosed: () => void) => new CoolClient(wire, { onClosed, log });
    const dial = (signal: AbortSignal, metadata: Metadata | null) => dialCool({ signal, metadata });
    const pool = new MuxPool({ ...bounds, dial, start });
    return shared(node, options, [pool, byWorkers], {
      connect: (destination, context) => pool.open(context, (session) => session.open(destination)),
      associate: (destination, context) =>
        pool.open(context, (session) => new CoolFlow(session, destination)),
    });
  }
  const pool = new MuxPool({
    ...bounds,
    dial: (signal, metadata) => node.connect(MUX_DESTINATION, { signal, metadata }),
    start: (wire, onClosed) => openMuxClient(wire, { protocol, padding }, { onStream: null, onClosed, log }),
  });
  const open = async (request: StreamRequest, context: DialContext): Promise<Duplex> => {
    const codec = new RequestCodec(request); // throws for a name that is too long: before anything is dialled
    const stream = await pool.open(context, (session) => session.open());
    return new CodecStream(stream, codec, { openAfterMs: OPEN_AFTER_MS });
  };
  return shared(node, options, [pool, byWorkers], {
    connect: (destination, context) => open({ kind: "stream", destination }, context),
    associate: async (destination, context) =>
      new StreamFlow(await open({ kind: "packets", destination }, context), packetFraming("host")),
  });
}

function boundsOf(options: MuxClientOptions) {
  return {
    maxConnections: options["max-connections"],
    minStreams: options["min-streams"],
    maxStreams: options["max-streams"],
  };
}

function shared(
  node: Outbound,
  options: MuxClientOptions,
  [pool, { plain, template, leave }]: readonly [AsyncDisposable, SharedByWorkers],
  dialer: Dialer,
): Outbound {
  const isBeside = options["only-tcp"];
  // As in other programs the shared streams carry datagrams whether or not the node has `udp`.
  const networks = isBeside || options.protocol === MUX_COOL ? node.networks : BOTH_NETWORKS;
  return {
    ...node,
    networks,
    sendsDatagrams: isBeside && node.sendsDatagrams === true,
    connect: dialer.connect,
    plain,
    template,
    async associate(destination, context) {
      if (!networks.has("udp"))
        throw new DialError("unsupported", `${node.name}: udp is not enabled for this proxy`);
      return await (isBeside ? node : dialer).associate(destination, context);
    },
    async [Symbol.asyncDispose]() {
      leave();
      await pool[Symbol.asyncDispose]();
      await node[Symbol.asyncDispose]();
    },
  };
}
