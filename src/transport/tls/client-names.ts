/** The names of a server. */
import type { TlsClientOptions } from "#core/tls.ts";
import { parseIp } from "#net/address/ip.ts";

/** What goes into SNI; empty: nothing, since an address must not. */
export function sniOf({ serverName }: Pick<TlsClientOptions, "serverName">): string {
  return parseIp(serverName) === null ? serverName : "";
}

/** What the certificate must be valid for. */
export function verifyNameOf({
  serverName,
  nameCertVerify,
}: Pick<TlsClientOptions, "serverName"> & Partial<Pick<TlsClientOptions, "nameCertVerify">>): string {
  return nameCertVerify ?? serverName;
}
