/** What lies between TCP and everything else: nothing, TLS, or REALITY. One function on each side chooses. */
import type { Duplex } from "node:stream";
import { ConfigError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { TlsAccepted, TlsClient, TlsProvider } from "#core/tls.ts";
import type { RealityRules } from "#core/reality-rules.ts";
import type { TlsContextSource } from "#core/tls-contexts.ts";
import type { Log } from "#core/log.ts";
import type { Dialer } from "#core/outbound.ts";
import { readRealityServer } from "#transport/reality/server/options.ts";
import { RealityServer } from "#transport/reality/server/server.ts";
import { readTlsClient, type TlsClientContext } from "./tls/client-options.ts";
import type { RealityServerFields, TlsClientFields, TlsServerFields } from "./tls/fields.ts";
import { readTlsServer } from "./tls/server-options.ts";

/** A stream behind the security layer, with what the layer knows of it; all of it null where there is none. */
export interface Secured extends TlsAccepted {
  /** Of a client whose socket a worker may keep. Absent: `stream` is all that there is. */
  readonly connection?: AcceptedConnection;
  /** To be told that its client has shown who it is. */
  onAuthenticated?(): void;
}

export interface SecurityClient {
  /** What the layer is called where people read it. */
  readonly kind: "none" | "tls";
  /** Owns the stream from here. `redial` as of `TlsOpening`. Throws `DialError`. */
  open(stream: Duplex, signal: AbortSignal, redial?: () => Promise<Duplex>): Promise<Secured>;
  /** Null: there is no TLS. */
  readonly tls: Pick<TlsClient, "recipe"> | null;
}

export interface SecurityServer extends Disposable {
  readonly kind: "none" | "tls";
  /** By what threads may shake hands in its place; null: there is nothing to shake. */
  readonly contexts: TlsContextSource | null;
  /** The same of REALITY. To be asked for only where they are handed on. */
  openRules(): RealityRules | null;
  /**
   * Owns the client from here. Throws `ProtocolError` or `AuthError`; the client is destroyed then, or (REALITY) lives
   * on as a plain relay.
   */
  accept(connection: AcceptedConnection): Promise<Secured>;
  /** A client that may stay with its worker, at once; null: `accept` is to be called. */
  keep(connection: AcceptedConnection): Secured | null;
}

export interface SecurityClientFields extends TlsClientFields {
  readonly tls: boolean;
}

export interface SecurityClientContext extends TlsClientContext {
  /** The protocol inside will leave the layer behind (xtls-rprx-vision). */
  readonly bypassable: boolean;
  readonly tls: TlsProvider;
  readonly log: Log;
}

export async function chooseSecurityClient(
  fields: SecurityClientFields,
  context: SecurityClientContext,
): Promise<SecurityClient> {
  if (!fields.tls && fields["reality-opts"] !== undefined)
    throw new ConfigError(`proxy ${context.node}: reality-opts: REALITY needs tls: true`);
  if (!fields.tls) return { kind: "none", tls: null, open: async (stream) => plain(stream) };
  const { bypassable, log } = context;
  const options = await readTlsClient(fields, bypassable ? { ...context, minVersion: "TLSv1.3" } : context);
  const client = context.tls.makeClient(options, log);
  return {
    kind: "tls",
    tls: client,
    async open(stream, signal, redial) {
      const again = redial === undefined ? {} : { redial };
      const opened = await client.open(stream, { signal, bypassable, ...again });
      return { ...opened, serverName: options.serverName };
    },
  };
}

export interface SecurityServerFields extends TlsServerFields {
  readonly "reality-config"?: RealityServerFields | undefined;
}

export interface SecurityServerContext {
  /** `listener edge`: named in errors. */
  readonly where: string;
  readonly alpn: readonly string[];
  /** Asked for each accepted stream: may the protocol inside leave the layer behind? */
  readonly bypassable: () => boolean;
  readonly carriesHttp2: boolean;
  readonly tls: TlsProvider;
  readonly files: SafeFiles;
  /** To dest of REALITY, where it is not reached by another outbound. */
  readonly dialer: Dialer;
  /** As `InboundEnv` has it. */
  readonly through: (name: string) => Dialer;
  readonly nowMs: () => number;
  readonly log: Log;
}

export async function chooseSecurityServer(
  fields: SecurityServerFields,
  context: SecurityServerContext,
): Promise<SecurityServer> {
  const reality = fields["reality-config"];
  if (reality !== undefined) {
    refuseCertificate(fields, context.where);
    const server = new RealityServer(readRealityServer(reality, context.where), context);
    return {
      kind: "tls",
      contexts: null,
      openRules: () => server.openRules(),
      accept: (connection) => server.accept(connection, context.bypassable()),
      keep: (connection) => server.keep(connection, context.bypassable()),
      [Symbol.dispose]: () => server[Symbol.dispose](),
    };
  }
  const options = readTlsServer(fields, context.where, context);
  if (options === null)
    return {
      kind: "none",
      contexts: null,
      openRules: () => null,
      accept: async (connection) => plain(connection.stream()),
      keep: () => null,
      [Symbol.dispose]() {},
    };
  const server = await context.tls.openServer(options, context.files, context.log);
  return {
    kind: "tls",
    contexts: server.contexts,
    openRules: () => null,
    accept: (connection) => server.acceptConnection(connection, { bypassable: context.bypassable() }),
    keep: (connection) => server.keep(connection, context.bypassable()),
    [Symbol.dispose]: () => server[Symbol.dispose](),
  };
}

/** Beside REALITY nothing of a certificate of one's own would ever be shown or asked for. */
function refuseCertificate(fields: SecurityServerFields, where: string): void {
  const keys = ["certificate", "private-key", "client-auth-type", "client-auth-cert", "ech-key"] as const;
  const key = keys.find((one) => (fields[one] ?? "") !== "");
  if (key !== undefined) throw new ConfigError(`${where}: ${key} and reality-config exclude each other`);
}

function plain(stream: Duplex): Secured {
  return { stream, alpn: null, serverName: null, bypass: null };
}
