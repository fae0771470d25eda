/** The client's transport: TCP, the security layer, the carrier; chosen once per node by its `network`. */
import type { Duplex } from "node:stream";
import { ConfigError, DialError, asDialError } from "#core/errors.ts";
import type { DialContext, Dialer, OutboundEnv } from "#core/outbound.ts";
import { type Destination, destinationText } from "#core/session.ts";
import type { TlsClient } from "#core/tls.ts";
import type { UpgradeRecipe } from "#core/wire-recipe.ts";
import { CodecStream } from "#net/stream/codec-stream.ts";
import { parseIp, toDestination } from "#net/address/ip.ts";
import type { TransportClientFields, TransportNetwork } from "./fields.ts";
import { transportDefaults } from "./fields.ts";
import { FakeHttpCodec } from "./fake-http.ts";
import { openGrpcStream, openH2Stream } from "./http2/client.ts";
import { Http1Pool } from "./http1/pool.ts";
import { Http2Exchanges } from "./http2/exchanges.ts";
import { HTTP3_ALPN } from "./http3/alpn.ts";
import { Http2Pool } from "./http2/pool.ts";
import { parseConfiguredPath, pathOf } from "./http-head.ts";
import type { Secured, SecurityClientFields } from "./security.ts";
import { chooseSecurityClient } from "./security.ts";
import { EARLY_DATA_HEADER } from "./websocket/early-data.ts";
import { openXhttpStream, type XhttpClientOptions } from "./xhttp/client.ts";
import { asksForHttp3, openHttp3Exchanges } from "./xhttp/http3.ts";
import {
  type HttpUpgradeOptions,
  openHttpUpgradeClient,
  openWebSocketClient,
  type WebSocketClientOptions,
} from "./websocket/client.ts";

export interface TransportClientOptions extends TransportClientFields, SecurityClientFields {
  readonly server: string;
  readonly port: number;
  /** The node's `sni` or `servername`. */
  readonly serverName: string | undefined;
  /** For `network: tcp`, where the node has no `alpn`. */
  readonly defaultAlpn?: readonly string[];
  /** The protocol inside will leave the security layer behind: only over bare TCP. */
  readonly bypassable?: boolean;
}

export interface BareServer {
  readonly dialer: Dialer;
  readonly address: Destination;
  /** What opens TLS; null: there is none. */
  readonly tls: Pick<TlsClient, "recipe"> | null;
  /** Null: there is none. */
  readonly upgrade: UpgradeRecipe | null;
}

/** Opens streams to one server. Disposing it ends what it pools, not the streams. */
export interface TransportClient extends AsyncDisposable {
  readonly security: "none" | "tls";
  /** True: its server is reached by datagrams. */
  readonly sendsDatagrams?: true;
  /** Throws `DialError`; nothing is left open then. */
  connect(context: DialContext): Promise<Secured>;
  /** Where it leads, and by what, if no more lies over the socket than workers can open; else null. */
  readonly bare: BareServer | null;
}

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
  const secure = await openSecured(options, network, env);
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
    bare: bareOf(options, network, env, secure),
    async [Symbol.asyncDispose]() {},
  };
}

function bareOf(
  options: TransportClientOptions,
  network: TransportNetwork,
  { dialer }: OutboundEnv,
  { kind, tls }: SecuredDialer,
): BareServer | null {
  const upgrade = network === "ws" ? upgradeOf(options) : null;
  const isKnown = network === "tcp" || upgrade !== null;
  if (!isKnown || (kind === "tls" && tls === null)) return null;
  return { dialer, address: toDestination(options.server, options.port), tls, upgrade };
}

/** Null: payload goes with the request. */
function upgradeOf(options: TransportClientOptions): UpgradeRecipe | null {
  const settings = webSocketOf(options);
  const isFramed = settings.kind === "websocket";
  const goesEarly = isFramed ? settings.earlyDataBytes > 0 : settings.fastOpen;
  const { path, host, headers } = settings;
  return goesEarly ? null : { isFramed, path, host, headers };
}

interface SecuredDialer {
  readonly kind: "none" | "tls";
  readonly tls: BareServer["tls"];
  dial(signal: AbortSignal, metadata: DialContext["metadata"]): Promise<Secured>;
}

async function openSecured(
  options: TransportClientOptions,
  network: TransportNetwork,
  { name, dialer, files, log, trust, tls, resolver }: OutboundEnv,
): Promise<SecuredDialer> {
  const { "ws-opts": ws } = options;
  const wsHost = network === "ws" ? headerOf(ws?.headers, "host") : undefined;
  const forced = isXhttp1(options, network) ? ["http/1.1"] : FORCED_ALPN[network];
  const client = await chooseSecurityClient(
    forced === undefined ? options : { ...options, alpn: [...forced] },
    {
      node: name,
      server: options.server,
      serverName: options.serverName || wsHost,
      ...(options.defaultAlpn === undefined ? {} : { defaultAlpn: options.defaultAlpn }),
      bypassable: options.bypassable === true && network === "tcp",
      carriesHttp2: isMultiplexed(network),
      tls,
      files,
      log,
      trust,
      resolver,
    },
  );
  const server = toDestination(options.server, options.port);
  return {
    kind: client.kind,
    tls: client.tls,
    async dial(signal, metadata) {
      const dial = (): Promise<Duplex> => dialer.connect(server, { signal, metadata });
      return await client.open(await dial(), signal, dial);
    },
  };
}

/** What a carrier needs is not the node's choice: two protocols offered would leave it to the server. */
const FORCED_ALPN: Partial<Record<TransportNetwork, readonly string[]>> = {
  ws: ["http/1.1"],
  http: ["http/1.1"],
  grpc: ["h2"],
  h2: ["h2"],
  xhttp: ["h2"],
};

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

type WebSocketSettings =
  | ({ readonly kind: "websocket" } & WebSocketClientOptions)
  | ({ readonly kind: "http-upgrade" } & HttpUpgradeOptions);

function webSocketOf(options: TransportClientOptions): WebSocketSettings {
  const ws = options["ws-opts"] ?? transportDefaults.ws();
  const { path, earlyDataBytes } = parseConfiguredPath(ws.path);
  const common = { path, host: headerOf(ws.headers, "host") ?? hostOf(options), headers: ws.headers };
  if (ws["v2ray-http-upgrade"]) {
    const fastOpen = ws["v2ray-http-upgrade-fast-open"] || earlyDataBytes > 0;
    return { kind: "http-upgrade", ...common, fastOpen };
  }
  const size = earlyDataBytes || ws["max-early-data"];
  // `?ed=` means the usual header; with `max-early-data` a header that is not named means the path.
  const header = ws["early-data-header-name"] ?? (earlyDataBytes > 0 ? EARLY_DATA_HEADER : "");
  return { kind: "websocket", ...common, earlyDataBytes: size, earlyDataHeader: header };
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

type Multiplexed = "grpc" | "h2" | "xhttp";

function isMultiplexed(network: TransportNetwork): network is Multiplexed {
  return network === "grpc" || network === "h2" || network === "xhttp";
}

function openMultiplexed(
  options: TransportClientOptions,
  network: Multiplexed,
  secure: SecuredDialer,
  env: OutboundEnv,
): TransportClient {
  const grpc = options["grpc-opts"] ?? transportDefaults.grpc();
  const h2 = options["h2-opts"] ?? transportDefaults.h2();
  const scheme = secure.kind === "none" ? "http" : "https";
  const pool = new Http2Pool({
    dial: (signal, metadata) => secure.dial(signal, metadata),
    maxConnections: network === "grpc" ? grpc["max-connections"] : 0,
    minStreams: grpc["min-streams"],
    maxStreams: network === "grpc" ? grpc["max-streams"] : 0,
    pingIntervalMs: network === "grpc" ? grpc["ping-interval"] * 1000 : 0,
  });
  const isHttp1 = isXhttp1(options, network);
  const http = isHttp1
    ? new Http1Pool(({ signal, metadata }) => secure.dial(signal, metadata))
    : new Http2Exchanges(pool);
  const grpcOptions = {
    scheme,
    authority: hostOf(options),
    serviceName: grpc["grpc-service-name"],
    userAgent: grpc["grpc-user-agent"] ?? "grpc-go/1.36.0",
  } as const;
  const h2Options = { scheme, hosts: h2.host, path: h2.path, method: "PUT", headers: {} } as const;
  const xhttp = xhttpOf(options, scheme);
  const open = (context: DialContext): Promise<Duplex> => {
    if (network === "xhttp") return openXhttpStream(http, xhttp, context);
    return network === "grpc"
      ? openGrpcStream(pool, grpcOptions, context)
      : openH2Stream(pool, h2Options, context);
  };
  return {
    security: secure.kind,
    bare: null,
    async connect(context) {
      if (context.signal.aborted) throw new DialError("aborted", `${env.name}: aborted`);
      const stream = await open(context);
      return {
        stream,
        alpn: isHttp1 ? "http/1.1" : "h2",
        serverName: options.serverName ?? options.server,
        bypass: null,
      };
    },
    async [Symbol.asyncDispose]() {
      await http[Symbol.asyncDispose]();
      await pool[Symbol.asyncDispose]();
    },
  };
}

async function openXhttp3(options: TransportClientOptions, env: OutboundEnv): Promise<TransportClient> {
  const http = await openHttp3Exchanges(options, env);
  const xhttp = xhttpOf(options, "https");
  return {
    security: "tls",
    bare: null,
    sendsDatagrams: true,
    connect: async (context) => ({
      stream: await openXhttpStream(http, xhttp, context),
      alpn: HTTP3_ALPN,
      serverName: options.serverName ?? options.server,
      bypass: null,
    }),
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  };
}

/** XHTTP speaks HTTP/1.1 where the node's `alpn` names nothing else, as its peers have it; else HTTP/2. */
function isXhttp1({ alpn }: TransportClientOptions, network: TransportNetwork): boolean {
  return network === "xhttp" && alpn?.length === 1 && alpn[0] === "http/1.1";
}

function xhttpOf(options: TransportClientOptions, scheme: "http" | "https"): XhttpClientOptions {
  const xhttp = options["xhttp-opts"] ?? transportDefaults.xhttp();
  const { path } = parseConfiguredPath(xhttp.path);
  const query = path.slice(pathOf(path).length + 1);
  const headers = Object.entries(xhttp.headers).filter(([name]) => name.toLowerCase() !== "host");
  return {
    scheme,
    authority: xhttp.host || (headerOf(xhttp.headers, "host") ?? hostOf(options)),
    path: pathOf(path),
    query,
    mode: xhttp.mode === "auto" ? "packet-up" : xhttp.mode,
    headers: Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value])),
    noGrpcHeader: xhttp["no-grpc-header"],
    maxPostBytes: xhttp["sc-max-each-post-bytes"],
    minPostsIntervalMs: xhttp["sc-min-posts-interval-ms"],
  };
}

/** Configured name, else the server; an IPv6 address in brackets; the port unless it is the usual one. */
function hostOf({ serverName, server, port, tls }: TransportClientOptions): string {
  const host = serverName || server;
  if (port === (tls ? 443 : 80)) return parseIp(host)?.includes(":") === true ? `[${host}]` : host;
  const ip = parseIp(host);
  return destinationText(ip === null ? { host, ip, port } : { host: null, ip, port });
}

function headerOf(headers: Readonly<Record<string, string>> | undefined, name: string): string | undefined {
  return Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1];
}
