/** What reaches the server of a node: its options, and what the node is given. */
import type { DialContext, Dialer } from "#core/outbound.ts";
import type { Destination } from "#core/session.ts";
import type { TlsClient } from "#core/tls.ts";
import type { UpgradeRecipe } from "#core/wire-recipe.ts";
import type { TransportClientFields } from "./fields.ts";
import type { SharedRequests } from "./http2/shared-requests.ts";
import type { Secured, SecurityClientFields } from "./security.ts";

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
  /** Streams share connections to it. Absent or null: each has one. */
  readonly shared?: SharedRequests["recipe"] | null;
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
