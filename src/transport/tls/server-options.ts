/** The settings of a TLS listener. */
import { ConfigError } from "#core/errors.ts";
import type { TlsServerOptions } from "#core/tls.ts";
import type { TlsServerFields } from "./fields.ts";

/**
 * From a listener's keys; null where it has no certificate. `where` (`listener edge`) is named in errors: a key
 * without its certificate, client authentication without a certificate to check against, ECH.
 */
export function readTlsServer(
  fields: TlsServerFields,
  where: string,
  { alpn = [], carriesHttp2 = false }: Partial<Pick<TlsServerOptions, "alpn" | "carriesHttp2">> = {},
): TlsServerOptions | null {
  const { certificate = "", "private-key": privateKey = "", "client-auth-cert": authority = "" } = fields;
  if ((fields["ech-key"] ?? "") !== "")
    throw new ConfigError(
      `${where}: ech-key: Encrypted ClientHello is not available in this runtime; remove the key`,
    );
  if (certificate === "" && privateKey === "") {
    if (authority !== "" || fields["client-auth-type"] !== "")
      throw new ConfigError(
        `${where}: client-auth-type and client-auth-cert need certificate and private-key`,
      );
    return null;
  }
  if (certificate === "" || privateKey === "")
    throw new ConfigError(`${where}: TLS needs both certificate and private-key`);
  const type =
    fields["client-auth-type"] === "" && authority !== "" ? "require-and-verify" : fields["client-auth-type"];
  if (VERIFYING.has(type) && authority === "")
    throw new ConfigError(
      `${where}: client-auth-type ${type} needs client-auth-cert, the authority to check against`,
    );
  return {
    certificate,
    privateKey,
    clientAuthType: type,
    clientAuthCert: authority || null,
    alpn,
    minVersion: "TLSv1.2",
    carriesHttp2,
  };
}

export const VERIFYING: ReadonlySet<string> = new Set(["verify-if-given", "require-and-verify"]);
