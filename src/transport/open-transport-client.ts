/** The client's transport: TCP, the security layer, the carrier; chosen once per node by its `network`. */
import type { Duplex } from "node:stream";
import { ConfigError, asDialError } from "#core/errors.ts";
import type { OutboundEnv } from "#core/outbound.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { bareOf } from "./bare-server.ts";
import { FakeHttpCodec } from "./fake-http.ts";
import { transportDefaults, type TransportNetwork } from "./fields.ts";
import { openMultiplexed } from "./multiplexed-client.ts";
import { hostOf } from "./node-host.ts";
import { isMultiplexed, openSecuredDialer, type SecuredDialer } from "./secured-dialer.ts";
import type { Secured } from "./security.ts";
import type { BareServer, TransportClient, TransportClientOptions } from "./transport-client.ts";
import { openHttpUpgradeClient, openWebSocketClient } from "./websocket/client.ts";
import { upgradeOf, webSocketOf } from "./websocket/settings.ts";
import { asksForHttp3, openXhttp3 } from "./xhttp/http3.ts";

type Carry = (secured: Secured, signal: AbortSignal) => Promise<Secured>;

/** Throws `ConfigError`. */
export async function openTransportClient(
  options: TransportClientOptions,
  env: OutboundEnv,
): Promise<TransportClient> {
  const network: TransportNetwork = options.network || "tcp";
  if (network === "h2" && !options.tls)
    throw new ConfigError(`proxy ${env.name}: network h2 needs tls: true`);
  if (network === "xhttp" && asksForHttp3(options)) return openXhttp3(options, env);
  const secure = await openSecuredDialer(options, network, env);
  if (isMultiplexed(network)) return openMultiplexed(options, network, secure, env);
  const carry = carrierOf(options, network);
  return {
    security: secure.kind,
    async connect({ signal, metadata }) {
      const secured = await secure.dial(signal, metadata);
      try {
        return await carry(secured, signal);
      } catch (error) {
        throw asDialError(error, `${env.name}: ${network}`);
      }
    },
    bare: bareByNetwork(options, network, env, secure),
    async [Symbol.asyncDispose]() {},
  };
}

function bareByNetwork(
  options: TransportClientOptions,
  network: TransportNetwork,
  env: OutboundEnv,
  secure: SecuredDialer,
): BareServer | null {
  const upgrade = network === "ws" ? upgradeOf(options) : null;
  return network === "tcp" || upgrade !== null ? bareOf(options, env, secure, { upgrade }) : null;
}

function carrierOf(options: TransportClientOptions, network: TransportNetwork): Carry {
  if (network === "ws") return webSocketCarrier(options);
  if (network !== "http") return async (secured) => secured;
  const http = options["http-opts"] ?? transportDefaults.http();
  const host = hostOf(options);
  return async (secured) => ({
    ...secured,
    stream: new CodecStream(secured.stream, new FakeHttpCodec({ ...http, host }), { openAfterMs: 300 }),
    bypass: null,
  });
}

function webSocketCarrier(options: TransportClientOptions): Carry {
  const settings = webSocketOf(options);
  const open = (stream: Duplex, signal: AbortSignal): Promise<Duplex> =>
    settings.kind === "websocket"
      ? openWebSocketClient(stream, settings, signal)
      : openHttpUpgradeClient(stream, settings, signal);
  return async ({ stream, ...rest }, signal) => ({
    ...rest,
    stream: await open(stream, signal),
    bypass: null,
  });
}
