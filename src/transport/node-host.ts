/** What a node's server is called in requests over HTTP. */
import { destinationText } from "#core/session.ts";
import { parseIp } from "#net/address/ip.ts";
import type { TransportClientOptions } from "./transport-client.ts";

/** Configured name, else the server; an IPv6 address in brackets; the port unless it is the usual one. */
export function hostOf({ serverName, server, port, tls }: TransportClientOptions): string {
  const host = serverName || server;
  if (port === (tls ? 443 : 80)) return parseIp(host)?.includes(":") === true ? `[${host}]` : host;
  const ip = parseIp(host);
  return destinationText(ip === null ? { host, ip, port } : { host: null, ip, port });
}

export function headerOf(
  headers: Readonly<Record<string, string>> | undefined,
  name: string,
): string | undefined {
  return Object.entries(headers ?? {}).find(([key]) => key.toLowerCase() === name)?.[1];
}
