/** The settings of a TLS listener. */
import { ConfigError } from "#core/errors.ts";
import type { TlsServerOptions } from "#core/tls.ts";
import type { TlsServerFields } from "./fields.ts";

/**
 * From a listener's keys; null where it has no certificate. `where` (`listener edge`) is named in errors: a key
 * without its certificate, client authentication without a certificate to check against, or beside `ech-key`.
 */
export function readTlsServer(
  fields: TlsServerFields,
  where: string,
  { alpn = [], carriesHttp2 = false }: Partial<Pick<TlsServerOptions, "alpn" | "carriesHttp2">> = {},
): TlsServerOptions | null {
  const { certificate = "", "private-key": privateKey = "", "client-auth-cert": authority = "" } = fields;
  const echKey = fields["ech-key"] || null;
  if (certificate === "" && privateKey === "") {
    if (echKey !== null) throw new ConfigError(`${where}: ech-key needs certificate and private-key`);
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
  if (type !== "" && echKey !== null)
    throw new ConfigError(
      `${where}: ech-key and client-auth-type exclude each other: certificates of clients are not read behind Encrypted ClientHello`,
    );
  return {
    where,
    echKey,
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
