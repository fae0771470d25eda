import type { SecureContext } from "node:tls";
import { parseIp } from "#net/address/ip.ts";
import type { NativeClient } from "./native-client.ts";
import type { MinVersion } from "./tuning.ts";

/** What one TLS client needs, ready to use; made once per node by `readTlsClient`, or by hand. */
export interface TlsClientOptions {
  /** Goes into SNI unless it is an address, and is what the certificate must be valid for. */
  readonly serverName: string;
  readonly alpn?: readonly string[];
  /** Accepts any certificate. */
  readonly skipCertVerify?: boolean;
  /** SHA-256 of a certificate, 64 lower-case hex digits; replaces chain verification. */
  readonly fingerprint?: string;
  /** The name that the certificate must be valid for, where it is not `serverName`. */
  readonly nameCertVerify?: string;
  /** Holds trust and the client certificate; absent: the default trust. */
  readonly secureContext?: SecureContext;
  readonly minVersion?: MinVersion;
  /** The library itself, for kernel sockets; absent: by `node:tls` alone. */
  readonly native?: NativeClient;
}

/** What goes into SNI; empty: nothing, since an address must not. */
export function sniOf({ serverName }: TlsClientOptions): string {
  return parseIp(serverName) === null ? serverName : "";
}

/** What the certificate must be valid for. */
export function verifyNameOf({ serverName, nameCertVerify }: TlsClientOptions): string {
  return nameCertVerify ?? serverName;
}
