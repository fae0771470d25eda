/** `reality-config` of a listener as the server needs it. */
import { ConfigError } from "#core/errors.ts";
import type { Destination } from "#core/session.ts";
import type { FallbackLimit, RealityServerFields } from "#transport/tls/fields.ts";
import { openX25519Agreement } from "#transport/tls13/key-exchange.ts";
import type { AdmissionRules } from "./admission.ts";

const SHORT_ID_DIGITS = 16;

export interface RealityServerOptions extends AdmissionRules {
  /** `listener edge`: named in the log. */
  readonly where: string;
  readonly dest: Destination;
  /** What `privateKey` agrees by, 32 bytes. */
  readonly rawPrivateKey: Buffer;
  /** The outbound or group by which dest is reached; empty: directly. */
  readonly proxy: string;
  /** Version of the PROXY protocol by which dest learns whose connection it is; 0: it does not. */
  readonly xver: number;
  /** 32 bytes; null: certificates bear no signature of ML-DSA-65. */
  readonly mldsa65Seed: Buffer | null;
  /** For those who are relayed to dest, from them and to them; null: none. */
  readonly upload: FallbackLimit | null;
  readonly download: FallbackLimit | null;
}

/** Throws `ConfigError`. */
export function readRealityServer(fields: RealityServerFields, where: string): RealityServerOptions {
  const { "server-names": names, "short-id": ids, "mldsa65-seed": seed } = fields;
  if (names.length === 0) throw new ConfigError(`${where}: reality-config.server-names: expected a name`);
  if (ids.length === 0)
    throw new ConfigError(`${where}: reality-config.short-id: expected one, which may be empty`);
  if (seed !== "" && seed === fields["private-key"])
    throw new ConfigError(`${where}: reality-config.mldsa65-seed: it is the same as private-key`);
  const rawPrivateKey = Buffer.from(fields["private-key"], "base64url");
  return {
    where,
    rawPrivateKey,
    privateKey: openX25519Agreement(rawPrivateKey),
    serverNames: new Set(names.map((name) => name.toLowerCase())),
    shortIds: new Set(ids.map((id) => id.padEnd(SHORT_ID_DIGITS, "0"))),
    maxTimeDifferenceMs: fields["max-time-difference"],
    dest: fields.dest,
    proxy: fields.proxy,
    xver: fields.xver,
    mldsa65Seed: seed === "" ? null : Buffer.from(seed, "base64url"),
    upload: fields["limit-fallback-upload"] ?? null,
    download: fields["limit-fallback-download"] ?? null,
  };
}
