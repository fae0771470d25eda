import type { Duplex } from "node:stream";
import { DialError } from "#core/errors.ts";
import {
  BOTH_NETWORKS,
  type DialContext,
  type Outbound,
  type OutboundEnv,
  TCP_ONLY,
} from "#core/outbound.ts";
import type { Datagram, DatagramFlow, Destination } from "#core/session.ts";
import type { StreamCodec } from "#net/stream/codec-stream.ts";
import { toDestination } from "#net/address/ip.ts";
import { encodeSocksAddress } from "#net/address/socks-address.ts";
import { KEPT_AEAD_NAMES } from "#platform/aead.ts";
import { saltsOfServers } from "./memory.ts";
import { withMux } from "#protocols/mux/outbound.ts";
import { clientFlow, magicDestination, type Version } from "#protocols/udp-over-tcp/index.ts";
import { clientPackets } from "./client-packets.ts";
import { masterKey, type Method, preSharedKeys, methodOf } from "./methods.ts";
import type { OutboundOptions } from "./options.ts";
import { plainCodec } from "./plain.ts";
import { openPlugin, type Plugin } from "./plugin.ts";
import { openStream } from "#net/stream/departing-stream.ts";
import { type NodeServer, workerDials } from "#protocols/worker-dials.ts";
import type { WireRecipe } from "#core/wire-recipe.ts";
import { recipe } from "#protocols/begin-wire.ts";
import { OPEN_AFTER_MS } from "./begin.ts";
import { Sip004Codec } from "./sip004.ts";
import { type Chance, chanceBy, Sip022ClientCodec } from "./sip022.ts";
import { UnauthenticatedCodec } from "./stream-codec.ts";
import { itemAt } from "#lib/at.ts";

const KEPT: ReadonlySet<string> = new Set(KEPT_AEAD_NAMES);

/** Throws `ConfigError` for keys that do not fit the cipher. */
export async function openOutbound(options: OutboundOptions, env: OutboundEnv): Promise<Outbound> {
  const client = new Client(options, env, await openPlugin(options, env));
  const node: Outbound = {
    name: env.name,
    type: "Shadowsocks",
    networks: options.udp ? BOTH_NETWORKS : TCP_ONLY,
    sendsDatagrams: !options["udp-over-tcp"],
    connect: (destination, context) => client.connect(destination, context),
    ...workerDials(client.server, client.recipe, env),
    async associate(destination, context) {
      if (!options.udp) throw new DialError("unsupported", `${env.name}: udp is not enabled for this proxy`);
      return await client.associate(destination, context);
    },
    async [Symbol.asyncDispose]() {}, // neither pool nor timer
  };
  return withMux(node, options.smux, env);
}

class Client {
  readonly #env: OutboundEnv;
  readonly #plugin: Plugin | null;
  readonly #server: Destination;
  readonly #method: Method;
  readonly #keys: readonly Buffer[];
  readonly #chance: Chance;
  readonly #overTcp: Version | null;

  constructor(options: OutboundOptions, env: OutboundEnv, plugin: Plugin | null) {
    this.#env = env;
    this.#plugin = plugin;
    this.#chance = chanceBy(env.nowMs);
    this.#server = toDestination(options.server, options.port);
    this.#method = methodOf(options.cipher);
    const { edition } = this.#method;
    this.#keys =
      edition === "2022"
        ? preSharedKeys(this.#method, options.password)
        : [masterKey(this.#method, options.password)];
    this.#overTcp = options["udp-over-tcp"] ? (options["udp-over-tcp-version"] as Version) : null;
  }

  async connect(destination: Destination, context: DialContext): Promise<Duplex> {
    const codec = this.#codec(encodeSocksAddress(destination));
    const dial = (): Promise<Duplex> => this.#env.dialer.connect(this.#server, context);
    const below = this.#plugin === null ? await dial() : await this.#plugin(dial, context.signal);
    return openStream(below, codec, { openAfterMs: OPEN_AFTER_MS });
  }

  /** Null: something lies between the protocol and the socket. */
  get server(): NodeServer | null {
    return this.#plugin === null
      ? { dialer: this.#env.dialer, address: this.#server, tls: null, upgrade: null }
      : null;
  }

  /** Null: a worker has not the cipher. */
  get recipe(): WireRecipe | null {
    const { edition, name: cipher, aead, stream } = this.#method;
    if (edition === "plain" || stream !== undefined || !KEPT.has(aead)) return null;
    const keys = this.#keys.map((key) => Uint8Array.from(key));
    return recipe("shadowsocks", {
      cipher,
      keys,
      salts: edition === "2022" ? null : saltsOfServers().memory,
    });
  }

  #codec(address: Buffer): StreamCodec {
    const [method, keys] = [this.#method, this.#keys];
    if (method.edition === "plain") return plainCodec(address);
    if (method.edition === "2022")
      return new Sip022ClientCodec({ method, keys, address, chance: this.#chance });
    const common = { master: itemAt(keys, 0), request: address, salts: saltsOfServers() };
    if (method.stream !== undefined) return new UnauthenticatedCodec({ ...common, cipher: method.stream });
    return new Sip004Codec({ ...common, method });
  }

  async associate(destination: Destination, context: DialContext): Promise<DatagramFlow> {
    if (this.#overTcp !== null) {
      const stream = await this.connect(magicDestination(this.#overTcp), context);
      return clientFlow(stream, this.#overTcp, destination);
    }
    const inner = await this.#env.dialer.associate(this.#server, context);
    return sealedFlow(inner, this.#server, clientPackets(this.#method, this.#keys, this.#env.nowMs));
  }
}

function sealedFlow(
  inner: DatagramFlow,
  server: Destination,
  packets: ReturnType<typeof clientPackets>,
): DatagramFlow {
  return {
    closed: inner.closed,
    send(item) {
      inner.send({ payload: packets.seal(item), destination: server });
    },
    receive(on: (item: Datagram) => void) {
      inner.receive(({ payload }) => {
        const item = packets.open(Buffer.from(payload.buffer, payload.byteOffset, payload.length));
        if (item !== null) on(item);
      });
    },
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
}
