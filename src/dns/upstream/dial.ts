/** From a nameserver entry to an open stream: names by the default resolver, literal addresses to the dialer. */
import type { Duplex } from "node:stream";
import { checkServerIdentity, connect as connectTls, type TLSSocket } from "node:tls";
import { DialError } from "#core/errors.ts";
import type { Destination, Ip } from "#core/session.ts";
import { familyOf } from "#net/address/ip.ts";
import type { NameserverOptions } from "#core/dns-options.ts";
import { withDeadline } from "#dns/deadline.ts";
import type { UpstreamEnv } from "./upstream.ts";
import { abortion } from "./wire.ts";

const DIAL_TIMEOUT_MS = 5000;

/** A server that takes the connection and then says nothing must not hold what waits for it. */
export function inDialTime<T>(
  text: string,
  life: AbortSignal,
  dial: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = () => new DialError("timeout", `no connection to ${text} within ${DIAL_TIMEOUT_MS} ms`);
  return withDeadline(life, DIAL_TIMEOUT_MS, late, dial);
}

/** The literal address of the server; a random one of its IPv4 addresses, else of its IPv6 addresses. */
export async function resolveServer(
  server: NameserverOptions,
  env: UpstreamEnv,
  signal: AbortSignal,
): Promise<Ip> {
  if (server.ip !== null) return server.ip;
  const answers = await env.resolver.lookup(server.host, { signal });
  const v4 = answers.filter(({ ip }) => familyOf(ip) === 4);
  const usable = v4.length > 0 ? v4 : answers;
  const picked = usable[Math.floor(Math.random() * usable.length)];
  if (picked === undefined) throw new DialError("resolve", `no address for DNS server ${server.host}`);
  return picked.ip;
}

/** A proxy resolves the name of a TCP server itself; it sees the right addresses where we may not. */
export async function dialStream(
  server: NameserverOptions,
  env: UpstreamEnv,
  signal: AbortSignal,
): Promise<Duplex> {
  const exit = env.exit();
  const named = exit.kind === "proxy" && server.ip === null;
  const destination: Destination = named
    ? { host: server.host, ip: null, port: server.port }
    : { host: null, ip: await resolveServer(server, env, signal), port: server.port };
  return exit.dialer.connect(destination, { signal, metadata: null });
}

/** Dials and shakes hands. Verifies the name (or address) of the entry, or the one that `name-cert-verify` gives. */
export async function dialTls(
  server: NameserverOptions,
  env: UpstreamEnv,
  alpn: readonly string[],
  signal: AbortSignal,
): Promise<TLSSocket> {
  const raw = await dialStream(server, env, signal);
  const { skipCertVerify, nameCertVerify } = server;
  const socket = connectTls({
    socket: raw,
    host: server.host,
    servername: server.ip === null ? server.host : "", // RFC 6066 §3: no literal addresses
    secureContext: env.trust.context({ minVersion: "TLSv1.2" }),
    rejectUnauthorized: !skipCertVerify,
    checkServerIdentity: (_, certificate) => checkServerIdentity(nameCertVerify ?? server.host, certificate),
    ...(alpn.length === 0 ? {} : { ALPNProtocols: [...alpn] }),
  });
  raw.on("error", (error) => socket.destroy(error));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.once("secureConnect", resolve);
  socket.on("error", reject); // stays on: a later error must not end the process
  socket.once("close", () => reject(new DialError("failed", "TLS connection closed during the handshake")));
  const waiting = abortion(signal);
  try {
    await Promise.race([promise, waiting.aborted]);
    return socket;
  } catch (error) {
    socket.destroy();
    raw.destroy();
    throw error;
  } finally {
    waiting.release();
  }
}
