import type { OutboundEnv } from "#core/outbound.ts";
import { toDestination } from "#net/address/ip.ts";
import type { SecuredDialer } from "./secured-dialer.ts";
import type { BareServer, TransportClientOptions } from "./transport-client.ts";

/** The server of a node, for workers that dial it. Null: they cannot open its TLS. */
export function bareOf(
  { server, port }: TransportClientOptions,
  { dialer }: OutboundEnv,
  { kind, tls }: SecuredDialer,
  { upgrade = null, shared = null }: Partial<Pick<BareServer, "upgrade" | "shared">>,
): BareServer | null {
  if (kind === "tls" && tls === null) return null;
  return { dialer, address: toDestination(server, port), tls, upgrade, shared };
}
