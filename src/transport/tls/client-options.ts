import type { Socket } from "node:net";
import type { SecureContext } from "node:tls";
import { parseIp } from "#net/address/ip.ts";
import type { MinVersion } from "./tuning.ts";
import type { NativeTlsStream } from "./native-stream.ts";

export interface NativeOpening {
  readonly signal: AbortSignal;
  /** TLS may be left behind. */
  readonly exact: boolean;
}

export interface NativeOpened {
  readonly stream: NativeTlsStream;
  /** What both sides agreed on; null: nothing. */
  readonly alpn: string | null;
}

/** Speaks TLS to one server by the descriptor of a kernel socket. */
export interface KernelSocketTls {
  /** False: `node:tls` is to be used. */
  isReady(): boolean;
  /**
   * For a socket of which nothing was read; it is destroyed, and its descriptor lives on in the stream. The server is
   * verified before this settles. Failures are `DialError`, as of `openTlsClient`.
   */
  open(socket: Socket, opening: NativeOpening): Promise<NativeOpened>;
}

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
  readonly native?: KernelSocketTls;
}

/** What goes into SNI; empty: nothing, since an address must not. */
export function sniOf({ serverName }: TlsClientOptions): string {
  return parseIp(serverName) === null ? serverName : "";
}

/** What the certificate must be valid for. */
export function verifyNameOf({ serverName, nameCertVerify }: TlsClientOptions): string {
  return nameCertVerify ?? serverName;
}
