import type { Duplex } from "node:stream";
import { DialError } from "#core/errors.ts";
import type { DialContext, Outbound, OutboundEnv } from "#core/outbound.ts";
import { BOTH_NETWORKS, TCP_ONLY } from "#core/outbound.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { withMux } from "#protocols/mux/outbound.ts";
import { StreamFlow } from "#protocols/udp-over-tcp/flow.ts";
import { workerDials } from "#protocols/worker-dials.ts";
import { openTransportClient } from "#transport/open-transport-client.ts";
import { OPEN_AFTER_MS } from "./begin.ts";
import { RequestCodec } from "./codec.ts";
import { openInnerLayer } from "./inner-layer.ts";
import type { OutboundOptions } from "./options.ts";
import {
  COMMAND_CONNECT,
  COMMAND_UDP,
  encodeRequest,
  keyOf,
  packetFraming,
  type TrojanRequest,
} from "./wire.ts";

/** Throws `ConfigError`. */
export async function openOutbound(options: OutboundOptions, env: OutboundEnv): Promise<Outbound> {
  const transport = await openTransportClient(
    { ...options, tls: true, serverName: options.sni, defaultAlpn: ["h2", "http/1.1"] },
    env,
  );
  const key = keyOf(options.password);
  const inner = openInnerLayer(options["ss-opts"]);
  const open = async (request: TrojanRequest, context: DialContext): Promise<Duplex> => {
    const opening = encodeRequest(key, request); // throws for a name that is too long: before anything is dialled
    const { stream } = await transport.connect(context);
    if (inner !== null) return inner(stream, opening);
    return new CodecStream(stream, new RequestCodec(opening), { openAfterMs: OPEN_AFTER_MS });
  };
  const node: Outbound = {
    name: env.name,
    type: "Trojan",
    networks: options.udp ? BOTH_NETWORKS : TCP_ONLY,
    connect: (destination, context) => open({ command: COMMAND_CONNECT, destination }, context),
    ...workerDials(inner === null ? transport.bare : null, recipe("trojan", { key }), env),
    async associate(destination, context) {
      if (!options.udp) throw new DialError("unsupported", `${env.name}: udp is not enabled for this proxy`);
      return new StreamFlow(
        await open({ command: COMMAND_UDP, destination }, context),
        packetFraming("client"),
      );
    },
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
  return withMux(node, options.smux, env);
}
