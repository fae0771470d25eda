import { DialError } from "#core/errors.ts";
import {
  BOTH_NETWORKS,
  type DialContext,
  type Outbound,
  type OutboundEnv,
  TCP_ONLY,
} from "#core/outbound.ts";
import type { WireRecipe } from "#core/wire-recipe.ts";
import type { DatagramFlow, Destination } from "#core/session.ts";
import type { CodecStream } from "#net/stream/codec-stream.ts";
import { openStream } from "#net/stream/departing-stream.ts";
import { withMux } from "#protocols/mux/outbound.ts";
import { StreamFlow } from "#protocols/udp-over-tcp/flow.ts";
import { PACKET_ADDR_HOST, xudpFraming } from "#protocols/shared/datagram-framing.ts";
import { userIdBytes } from "#protocols/shared/user-id.ts";
import { openTransportClient } from "#transport/open-transport-client.ts";
import type { TransportClient } from "#transport/transport-client.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { workerDials } from "#protocols/worker-dials.ts";
import { newRequest, OPEN_AFTER_MS } from "./begin.ts";
import { VmessCodec } from "./codec.ts";
import {
  COMMAND_MUX,
  COMMAND_TCP,
  COMMAND_UDP,
  newChance,
  OPTION_AUTHENTICATED_LENGTH,
  OPTION_CHUNKS,
  OPTION_MASKING,
  OPTION_PADDING,
  sealRequest,
  SECURITY_AES,
  SECURITY_CHACHA,
  SECURITY_NONE,
} from "./header.ts";
import { commandKey } from "./kdf.ts";
import type { OutboundOptions } from "./options.ts";
import { packetAddr, plainFraming } from "./packets.ts";

/** Throws `ConfigError`. */
export async function openOutbound(options: OutboundOptions, env: OutboundEnv): Promise<Outbound> {
  const transport = await openTransportClient({ ...options, serverName: options.servername }, env);
  const client = new Client(options, env, transport);
  const node: Outbound = {
    name: env.name,
    type: "Vmess",
    networks: options.udp ? BOTH_NETWORKS : TCP_ONLY,
    connect: (destination, context) => client.open(COMMAND_TCP, destination, context),
    ...workerDials(transport.bare, client.recipe, env),
    associate: (destination, context) => client.associate(destination, context),
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  };
  return withMux(node, options.smux, env, (context) => client.open(COMMAND_MUX, null, context));
}

const SECURITY_OF = {
  auto: SECURITY_AES, // every machine that runs this has it in hardware, or fast enough
  "aes-128-gcm": SECURITY_AES,
  "chacha20-poly1305": SECURITY_CHACHA,
  none: SECURITY_NONE,
  zero: SECURITY_NONE,
} as const;

class Client {
  readonly #options: OutboundOptions;
  readonly #name: string;
  readonly #nowMs: () => number;
  readonly #transport: TransportClient;
  readonly #key: Buffer;

  constructor(
    options: OutboundOptions,
    { name, nowMs }: Pick<OutboundEnv, "name" | "nowMs">,
    transport: TransportClient,
  ) {
    this.#options = options;
    this.#name = name;
    this.#nowMs = nowMs;
    this.#transport = transport;
    this.#key = commandKey(userIdBytes(options.uuid));
  }

  async open(command: number, destination: Destination | null, context: DialContext): Promise<CodecStream> {
    const codec = this.#codec(command, destination);
    const { stream } = await this.#transport.connect(context);
    return openStream(stream, codec, { openAfterMs: OPEN_AFTER_MS });
  }

  /** Null: what it sends is not sealed. */
  get recipe(): WireRecipe | null {
    const security = SECURITY_OF[this.#options.cipher];
    if (security === SECURITY_NONE) return null;
    const commandKey = Uint8Array.from(this.#key);
    return recipe("vmess", { commandKey, security, options: this.#optionsFor(COMMAND_TCP) });
  }

  /** Throws for a name that is too long: before anything is dialled. */
  #codec(command: number, destination: Destination | null): VmessCodec {
    const [options, security] = [this.#optionsFor(command), SECURITY_OF[this.#options.cipher]];
    const request = newRequest({ options, security, command, destination });
    return new VmessCodec(request, sealRequest(this.#key, request, newChance(this.#nowMs())));
  }

  #optionsFor(command: number): number {
    const { cipher, "global-padding": padding, "authenticated-length": authenticated } = this.#options;
    // Chunks without a cipher are a form that sing-box's server cannot read in a stream; all servers read bare bytes.
    if (cipher === "zero" || cipher === "none") return command === COMMAND_TCP ? 0 : OPTION_CHUNKS;
    const padded = padding ? OPTION_PADDING : 0;
    const sealedSizes = authenticated ? OPTION_AUTHENTICATED_LENGTH : 0;
    return OPTION_CHUNKS | OPTION_MASKING | padded | sealedSizes;
  }

  async associate(destination: Destination, context: DialContext): Promise<DatagramFlow> {
    const { udp, "packet-encoding": encoding, xudp, "packet-addr": packetAddress } = this.#options;
    if (!udp) throw new DialError("unsupported", `${this.#name}: udp is not enabled for this proxy`);
    if (encoding === "xudp" || xudp) {
      return new StreamFlow(await this.open(COMMAND_MUX, null, context), xudpFraming());
    }
    if (encoding.startsWith("packet") || packetAddress) {
      const magic = { host: PACKET_ADDR_HOST, ip: null, port: 0 };
      return new StreamFlow(await this.open(COMMAND_UDP, magic, context), packetAddr);
    }
    const stream = await this.open(COMMAND_UDP, destination, context);
    return new StreamFlow(stream, plainFraming(destination, "client"));
  }
}
