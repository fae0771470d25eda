/** The client of a node whose streams share connections over HTTP: gRPC, `h2` and XHTTP. */
import type { Duplex } from "node:stream";
import { DialError } from "#core/errors.ts";
import type { DialContext, OutboundEnv } from "#core/outbound.ts";
import { transportDefaults } from "./fields.ts";
import { Http1Pool } from "./http1/pool.ts";
import { grpcRequest, h2Requests, openGrpcStream, openH2Stream } from "./http2/client.ts";
import { Http2Exchanges } from "./http2/exchanges.ts";
import { Http2Pool } from "./http2/pool.ts";
import { shareRequests } from "./http2/shared-requests.ts";
import { bareOf } from "./bare-server.ts";
import { hostOf } from "./node-host.ts";
import type { Multiplexed, SecuredDialer } from "./secured-dialer.ts";
import type { TransportClient, TransportClientOptions } from "./transport-client.ts";
import { openXhttpStream } from "./xhttp/client.ts";
import { streamOneRequest } from "./xhttp/requests.ts";
import { isXhttp1, xhttpOf } from "./xhttp/settings.ts";

export function openMultiplexed(
  options: TransportClientOptions,
  network: Multiplexed,
  secure: SecuredDialer,
  env: OutboundEnv,
): TransportClient {
  const grpc = options["grpc-opts"] ?? transportDefaults.grpc();
  const h2 = options["h2-opts"] ?? transportDefaults.h2();
  const scheme = secure.kind === "none" ? "http" : "https";
  const bounds = {
    maxConnections: network === "grpc" ? grpc["max-connections"] : 0,
    minStreams: grpc["min-streams"],
    maxStreams: network === "grpc" ? grpc["max-streams"] : 0,
    pingIntervalMs: network === "grpc" ? grpc["ping-interval"] * 1000 : 0,
  };
  const pool = new Http2Pool({ ...bounds, dial: (signal, metadata) => secure.dial(signal, metadata) });
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
  const asked = {
    grpc: { requests: [grpcRequest(grpcOptions)], isGrpc: true, paddedReferer: null },
    h2: { requests: h2Requests(h2Options), isGrpc: false, paddedReferer: null },
    xhttp: isHttp1 ? null : streamOneRequest(xhttp),
  };
  const shared = shareRequests(asked[network], bounds);
  const open = (context: DialContext): Promise<Duplex> => {
    if (network === "xhttp") return openXhttpStream(http, xhttp, context);
    return network === "grpc"
      ? openGrpcStream(pool, grpcOptions, context)
      : openH2Stream(pool, h2Options, context);
  };
  return {
    security: secure.kind,
    bare: shared === null ? null : bareOf(options, env, secure, { shared: shared.recipe }),
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
      shared?.leave();
      await http[Symbol.asyncDispose]();
      await pool[Symbol.asyncDispose]();
    },
  };
}
