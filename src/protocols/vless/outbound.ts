import type { Duplex } from "node:stream";
import { ConfigError, DialError } from "#core/errors.ts";
import type { DialContext, Outbound, OutboundEnv } from "#core/outbound.ts";
import { BOTH_NETWORKS, TCP_ONLY } from "#core/outbound.ts";
import type { Destination } from "#core/session.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { withMux } from "#protocols/mux/outbound.ts";
import { type DatagramFraming, StreamFlow } from "#protocols/udp-over-tcp/flow.ts";
import { MUX_COOL } from "#transport/mux/preface.ts";
import { openTransportClient } from "#transport/open-transport-client.ts";
import type { TransportClient } from "#transport/transport-client.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { workerDials } from "#protocols/worker-dials.ts";
import { OPEN_AFTER_MS } from "./begin.ts";
import { ClientCodec } from "./codec.ts";
import { EncryptionClient } from "./encryption/client.ts";
import { type ClientEncryption, readClientEncryption } from "./encryption/settings.ts";
import type { OutboundOptions } from "./options.ts";
import {
  PACKET_ADDR_HOST,
  packetAddrFraming,
  plainFraming,
  xudpFraming,
} from "#protocols/shared/datagram-framing.ts";
import { userIdBytes } from "#protocols/shared/user-id.ts";
import { VisionStream } from "./vision-stream.ts";
import {
  AnswerStripper,
  COMMAND_MUX,
  COMMAND_TCP,
  COMMAND_UDP,
  encodeRequest,
  type VlessRequest,
  VISION,
} from "./wire.ts";

/** Throws `ConfigError`. */
export async function openOutbound(options: OutboundOptions, env: OutboundEnv): Promise<Outbound> {
  const { flow, network, tls } = options;
  const encryption = readClientEncryption(options.encryption) as ClientEncryption | null;
  if (flow === VISION && encryption === null && (!tls || (network !== "" && network !== "tcp")))
    throw new ConfigError(`proxy ${env.name}: flow ${flow} needs encryption, or tls: true and network: tcp`);
  if (flow === VISION && options.smux?.enabled === true && options.smux.protocol === MUX_COOL)
    throw new ConfigError(
      `proxy ${env.name}: flow ${flow} carries no streams in mux.cool: leave flow or smux out, or take another smux.protocol`,
    );
  const transport = await openTransportClient(
    {
      ...options,
      serverName: options.servername,
      defaultAlpn: ["h2", "http/1.1"],
      bypassable: flow === VISION && encryption === null,
    },
    env,
  );
  const id = userIdBytes(options.uuid);
  const layers: Layers = {
    transport,
    encryption: encryption === null ? null : new EncryptionClient(encryption, () => performance.now()),
  };
  const open = (request: VlessRequest, context: DialContext) => openStream(layers, id, request, context);
  const node: Outbound = {
    name: env.name,
    type: "Vless",
    networks: options.udp ? BOTH_NETWORKS : TCP_ONLY,
    sendsDatagrams: transport.sendsDatagrams === true,
    connect: (destination, context) => open({ flow, command: COMMAND_TCP, destination }, context),
    ...workerDials(
      transport.bare,
      encryption === null ? recipe("vless", { id: Uint8Array.from(id), flow }) : null,
      env,
    ),
    async associate(destination, context) {
      if (!options.udp) throw new DialError("unsupported", `${env.name}: udp is not enabled for this proxy`);
      const { request, framing } = packetForm(options["packet-encoding"], flow, destination);
      return new StreamFlow(await open(request, context), framing);
    },
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
  return withMux(node, options.smux, env, (context) =>
    open({ flow, command: COMMAND_MUX, destination: null }, context),
  );
}

/** What lies between a request and the server. */
interface Layers {
  readonly transport: TransportClient;
  /** Null: the header is sent in the transport without encryption. */
  readonly encryption: EncryptionClient | null;
}

async function openStream(
  { transport, encryption }: Layers,
  id: Buffer,
  request: VlessRequest,
  context: DialContext,
): Promise<Duplex> {
  const opening = encodeRequest(id, request); // throws for a name that is too long: before anything is dialled
  const outer = await transport.connect(context);
  const hasFlow = request.flow !== "";
  const secured =
    encryption === null
      ? outer
      : { ...outer, ...(await encryption.open(outer.stream, context.signal, hasFlow)) };
  if (!hasFlow)
    return new CodecStream(secured.stream, new ClientCodec(opening), { openAfterMs: OPEN_AFTER_MS });
  const { bypass } = secured;
  if (bypass === null) {
    secured.stream.destroy();
    throw new DialError("failed", "this connection has no TLS that could be left behind");
  }
  return new VisionStream({
    secured: { ...secured, bypass },
    id,
    opening,
    answer: new AnswerStripper(),
    openAfterMs: OPEN_AFTER_MS,
  });
}

interface PacketForm {
  readonly request: VlessRequest;
  readonly framing: DatagramFraming;
}

/** With a flow it is always XUDP: servers refuse the other forms there. */
function packetForm(encoding: string, flow: string, destination: Destination): PacketForm {
  if (flow === "" && encoding === "none")
    return {
      request: { flow, command: COMMAND_UDP, destination },
      framing: plainFraming(destination, "client"),
    };
  if (flow === "" && (encoding === "packetaddr" || encoding === "packet"))
    return {
      request: { flow, command: COMMAND_UDP, destination: { host: PACKET_ADDR_HOST, ip: null, port: 0 } },
      framing: packetAddrFraming,
    };
  return { request: { flow, command: COMMAND_MUX, destination: null }, framing: xudpFraming() };
}
