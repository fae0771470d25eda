/** The server's transport: the security layer, then whatever carrier the client chose among those that are offered. */
import type { Duplex } from "node:stream";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { UnauthenticatedClient, UnauthenticatedClients } from "#core/inbound.ts";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { TlsProvider } from "#core/tls.ts";
import type { RealityRules } from "#core/reality-rules.ts";
import type { TlsContextSource } from "#core/tls-contexts.ts";
import type { Log } from "#core/log.ts";
import type { Dialer } from "#core/outbound.ts";
import { ByteReader } from "#net/stream/byte-reader.ts";
import { BareClient } from "./bare-client.ts";
import { XHTTP_TUNING, type TransportServerFields } from "./fields.ts";
import { http1Server } from "./http1/server.ts";
import { keepHttp2 } from "./http2/kept-session.ts";
import { serveHttp2 } from "./http2/server.ts";
import { HTTP3_ALPN } from "./http3/alpn.ts";
import { decodeHead, parseConfiguredPath, pathOf } from "./http-head.ts";
import { SwitchedClient } from "./switched-client.ts";
import type { Secured, SecurityServerFields } from "./security.ts";
import { chooseSecurityServer } from "./security.ts";
import { acceptUpgrade } from "./websocket/server.ts";
import { openXhttpQuic, type QuicCarrier } from "./xhttp/http3-server.ts";
import { XhttpServer } from "./xhttp/server.ts";

export interface TransportServerContext {
  /** The listener's name. */
  readonly name: string;
  /** Asked for each connection over bare TCP: may the protocol inside leave the security layer behind? */
  readonly bypassable?: () => boolean;
  readonly tls: TlsProvider;
  readonly files: SafeFiles;
  readonly dialer: Dialer;
  /** As `InboundEnv` has it. */
  readonly through: (name: string) => Dialer;
  readonly nowMs: () => number;
  readonly log: Log;
  /** As `InboundEnv` has it. */
  readonly unauthenticated?: UnauthenticatedClients;
}

export interface TransportServer extends Disposable {
  readonly security: "none" | "tls";
  /**
   * Nothing lies below the protocol but TCP, and what `security` says, and nothing of a client is to be looked at before its
   * first words: workers may read these.
   */
  readonly isBare: boolean;
  /**
   * Workers may answer requests to switch to WebSocket, or to the bare stream, that are made there: nothing else is served, and
   * nothing more lies below than TCP, and TLS by `contexts`. Null: they may not.
   */
  readonly upgradePath: string | null;
  /** Clients speak HTTP/2, whose frames workers may read. Absent: they do not. */
  readonly keepsHttp2?: boolean;
  /** By what threads may shake hands in its place; null: they may not. */
  readonly contexts: TlsContextSource | null;
  /** By what threads may shake hands of REALITY in its place, where nothing more lies below the protocol; absent: they may not. */
  readonly rules?: RealityRules | null;
  /** False: it is reached over `quic` alone. */
  readonly isOverTcp: boolean;
  /** Null: nothing of it is reached over UDP. */
  readonly quic: QuicCarrier | null;
  /**
   * Takes a connection over; each stream that it carries is given to `on`. Never throws. `unknown`: its client, until it has
   * authenticated; absent: it does not count.
   */
  serve(
    connection: AcceptedConnection,
    on: (carried: Secured) => void,
    unknown?: UnauthenticatedClient | null,
  ): void;
}

/** Nothing below the protocol but TCP. */
export const BARE_SERVER: TransportServer = {
  security: "none",
  isBare: true,
  upgradePath: null,
  contexts: null,
  isOverTcp: true,
  quic: null,
  serve: (connection, on) => on(new BareClient(connection)),
  [Symbol.dispose]() {},
};

const HTTP2_PREFACE = Buffer.from("PRI * HTTP/2.0");
const PREFACE_TIMEOUT_MS = 10_000;

/** Throws `ConfigError`. */
export async function openTransportServer(
  fields: SecurityServerFields & TransportServerFields,
  { name, bypassable, tls, files, dialer, through, nowMs, log, unauthenticated }: TransportServerContext,
): Promise<TransportServer> {
  const where = `listener ${name}`;
  const carriers = carriersOf(fields, where, unauthenticated ?? null);
  for (const key of XHTTP_TUNING)
    if (fields["xhttp-config"]?.[key] !== undefined)
      log.warning(`listener ${name}: xhttp-config.${key} has no effect here, and its users get no links`);
  // A client that has to show a certificate is answered by nothing before that was looked at.
  const asksNoCertificate = fields["client-auth-type"] === "";
  const keepsHttp2 = carriers.onlyTunnels && asksNoCertificate;
  using undo = new DisposableStack();
  const quic =
    carriers.overQuic === null
      ? null
      : undo.use(await openXhttpQuic(fields, carriers.overQuic, { where, tls, files, log }));
  const security = await chooseSecurityServer(fields, {
    where,
    alpn: carriers.alpn,
    bypassable: () => carriers.bare && bypassable?.() === true,
    carriesHttp2: carriers.http2 !== null && !keepsHttp2,
    tls,
    files,
    dialer,
    through,
    nowMs,
    log,
  });
  undo.move();
  const isPlain = security.kind === "none";
  const canSwitch = carriers.http2 === null && asksNoCertificate;
  const keep = (connection: AcceptedConnection): Secured | null => {
    const { switched } = connection;
    if (!isPlain) return security.keep(connection);
    return carriers.bare || keepsHttp2 || switched !== null ? new BareClient(connection) : null;
  };
  const secureOne = async (
    connection: AcceptedConnection,
    kept: Secured | null,
    on: (carried: Secured) => void,
    unknown: UnauthenticatedClient | null,
  ): Promise<void> => {
    const secured = kept ?? (await security.accept(connection));
    const { switched } = connection;
    if (switched !== null) return on(new SwitchedClient(secured, switched));
    const { stream } = secured;
    stream.on("error", () => stream.destroy());
    if (carriers.bare) return on(secured);
    const { alpn, serverName } = secured; // and not its connection: that is not the tunnel's
    const carry = (carried: Duplex, onAuthenticated: () => void): void =>
      on({ stream: carried, alpn, serverName, bypass: null, onAuthenticated });
    const bearer = { source: connection.source, unknown };
    if (carriers.http2 !== null && (await isHttp2(secured, carriers.http1 !== null)))
      return serveHttp2(stream, carriers.http2, carry, bearer);
    const { upgrade, http1 } = carriers;
    if (http1 !== null && (upgrade === null || carriers.ownsPath(await peekPath(stream))))
      return http1(stream, carry, bearer);
    if (upgrade === null) return void stream.destroy();
    on({ stream: await acceptUpgrade(stream, upgrade), alpn, serverName, bypass: null });
  };
  return {
    security: security.kind,
    isBare: carriers.bare && asksNoCertificate,
    upgradePath: canSwitch ? (carriers.upgrade?.path ?? null) : null,
    keepsHttp2,
    contexts: carriers.http2 === null || keepsHttp2 ? security.contexts : null,
    rules: carriers.bare || keepsHttp2 ? security.openRules() : null,
    isOverTcp: carriers.isOverTcp,
    quic,
    serve(connection, on, unknown = null) {
      const fail = (error: unknown): void => log.debug(() => `listener ${name}: ${messageOf(error)}`);
      const { switched } = connection;
      try {
        const kept = keep(connection);
        if (keepsHttp2 && carriers.http2 !== null) {
          const isKept = kept !== null && keepHttp2(kept, carriers.http2, on);
          if (!isKept) secureOne(connection, kept, on, unknown).catch(fail);
        } else if (kept === null) secureOne(connection, kept, on, unknown).catch(fail);
        else on(switched === null ? kept : new SwitchedClient(kept, switched));
      } catch (error) {
        fail(error);
      }
    },
    [Symbol.dispose]() {
      security[Symbol.dispose]();
      quic?.[Symbol.dispose]();
      carriers.http2?.xhttp?.[Symbol.dispose]();
    },
  };
}

function carriersOf(
  fields: SecurityServerFields & TransportServerFields,
  where: string,
  unauthenticated: UnauthenticatedClients | null,
) {
  const wsPath = fields["ws-path"] || null;
  const grpcServiceName = fields["grpc-service-name"] || null;
  const h2 =
    fields["h2-config"] === undefined
      ? null
      : { path: fields["h2-config"].path, hosts: fields["h2-config"].host };
  const { "xhttp-config": xhttpConfig } = fields;
  const isStreamOne = xhttpConfig?.mode === "stream-one";
  const { path = "", host = "" } = xhttpConfig ?? {};
  const place = { path: pathOf(parseConfiguredPath(path).path), hosts: host === "" ? [] : [host] };
  const xhttp =
    xhttpConfig === undefined
      ? null
      : new XhttpServer(place, { onlyStreamOne: isStreamOne, unauthenticated });
  const offered = [grpcServiceName, h2, xhttp].filter((carrier) => carrier !== null).length;
  // One carrier alone, of which each stream is one request.
  const onlyTunnels = offered === 1 && wsPath === null && (xhttp === null || isStreamOne);
  const streamOne = onlyTunnels && isStreamOne ? place : null;
  const http2 = offered === 0 ? null : { grpcServiceName, h2, streamOne, xhttp };
  const upgrade = wsPath === null ? null : { path: parseConfiguredPath(wsPath).path, host: null };
  const bare = http2 === null && upgrade === null;
  const http1 = xhttp === null ? null : http1Server(xhttp);
  const spoken = [
    ...(http2 === null && !bare ? [] : ["h2"]),
    ...(upgrade === null && http1 === null && !bare ? [] : ["http/1.1"]),
  ];
  const wanted = fields.alpn ?? spoken;
  const alpn = spoken.filter((one) => wanted.includes(one));
  const overQuic = wanted.includes(HTTP3_ALPN) ? xhttp : null;
  checkAlpn(fields, where, { overQuic, isSpoken: alpn.length > 0 });
  const ownsPath = (path: string) => xhttp?.owns(path) === true;
  const isOverTcp = overQuic === null || alpn.length > 0;
  return { bare, http2, onlyTunnels, http1, upgrade, alpn, overQuic, isOverTcp, ownsPath };
}

/** Throws `ConfigError` where `alpn` asks for what the listener has not. */
function checkAlpn(
  { alpn, "reality-config": reality }: SecurityServerFields & TransportServerFields,
  where: string,
  { overQuic, isSpoken }: { readonly overQuic: XhttpServer | null; readonly isSpoken: boolean },
): void {
  const wantsQuic = alpn?.includes(HTTP3_ALPN) === true;
  if (wantsQuic && overQuic === null)
    throw new ConfigError(`${where}: alpn: h3 carries nothing but XHTTP; set xhttp-config, or remove h3`);
  if (wantsQuic && reality !== undefined)
    throw new ConfigError(`${where}: alpn: REALITY is not spoken over HTTP/3; remove h3, or reality-config`);
  if (alpn !== undefined && !isSpoken && (!wantsQuic || alpn.length > 1))
    throw new ConfigError(
      `${where}: alpn: the listener's transports speak none of ${alpn.join(", ")} over TCP`,
    );
}

/** The path of an HTTP/1.1 request, which stays in the stream. */
async function peekPath(stream: Duplex): Promise<string> {
  using reader = new ByteReader(stream, { timeoutMs: PREFACE_TIMEOUT_MS });
  try {
    return await reader.take((bytes, seen) => {
      const head = decodeHead(bytes, seen);
      return head && { value: pathOf(head.value.start.split(" ")[1] ?? ""), size: 0 };
    });
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

/**
 * By what was agreed; where nothing was, by the first bytes. Clients of XHTTP over HTTP/1.1 that imitate a browser's
 * hello agree to h2 all the same, so where they are served the bytes always decide.
 */
async function isHttp2({ stream, alpn }: Secured, bytesDecide: boolean): Promise<boolean> {
  if (alpn !== null && !bytesDecide) return alpn === "h2";
  using reader = new ByteReader(stream, { timeoutMs: PREFACE_TIMEOUT_MS });
  try {
    const value = await reader.take((bytes) => {
      const size = Math.min(bytes.length, HTTP2_PREFACE.length);
      const same = HTTP2_PREFACE.subarray(0, size).equals(bytes.subarray(0, size));
      return same && size < HTTP2_PREFACE.length ? null : { value: same, size: 0 };
    });
    return value;
  } catch (error) {
    stream.destroy();
    throw error;
  }
}
