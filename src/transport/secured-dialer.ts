/** Dials the server of a node, and opens the security layer over the connection. */
import type { Duplex } from "node:stream";
import type { DialContext, OutboundEnv } from "#core/outbound.ts";
import { toDestination } from "#net/address/ip.ts";
import type { TransportNetwork } from "./fields.ts";
import { headerOf } from "./node-host.ts";
import { chooseSecurityClient, type Secured } from "./security.ts";
import type { BareServer, TransportClientOptions } from "./transport-client.ts";
import { isXhttp1 } from "./xhttp/settings.ts";

export interface SecuredDialer {
  readonly kind: "none" | "tls";
  readonly tls: BareServer["tls"];
  dial(signal: AbortSignal, metadata: DialContext["metadata"]): Promise<Secured>;
}

export async function openSecuredDialer(
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

export type Multiplexed = "grpc" | "h2" | "xhttp";

export function isMultiplexed(network: TransportNetwork): network is Multiplexed {
  return network === "grpc" || network === "h2" || network === "xhttp";
}
