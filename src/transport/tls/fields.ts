/** The TLS keys of nodes and listeners, under their names in files. */
import * as z from "zod";
import { certifiedNames } from "#core/acme.ts";
import {
  choice,
  Fault,
  Unsupported,
  flag,
  int,
  list,
  mapOf,
  name,
  pem,
  scalar,
  text,
  unsetAs,
} from "#core/fields.ts";
import { CLIENT_AUTH_TYPES } from "#core/tls.ts";
import { unsupported } from "#core/node-fields.ts";
import type { NamedOutbound } from "#core/protocol.ts";
import { destination } from "#net/address/destination-field.ts";

const FINGERPRINT = /^[0-9a-f]{64}$/;

/** SHA-256 of a certificate, hex, colons allowed; the value is 64 lower-case digits. */
const fingerprint = () =>
  scalar({ type: "string", pattern: "^([0-9A-Fa-f]{2}:?){32}$" }, (source) => {
    const digits = source.replaceAll(":", "").trim().toLowerCase();
    return FINGERPRINT.test(digits)
      ? digits
      : new Unsupported(
          "expected the SHA-256 of a certificate (64 hex digits, colons allowed); a browser's name belongs in client-fingerprint",
        );
  });

const publicKey = () =>
  scalar({ type: "string" }, (source) =>
    /^[A-Za-z0-9_-]{43}=?$/.test(source)
      ? source
      : new (source === "" ? Unsupported : Fault)("expected an X25519 public key: 32 bytes in base64url"),
  );

const shortId = () =>
  scalar({ type: "string" }, (source) =>
    /^([0-9a-fA-F]{2}){0,8}$/.test(source)
      ? source.toLowerCase()
      : new Fault("expected up to 8 bytes in hex"),
  );

const echOptions = z.object({
  enable: flag().default(false),
  config: text().optional(),
  "query-server-name": text().optional(),
});

const NO_REALITY = "REALITY is not available here";

/** x.y.z, each of one byte. */
const clientVersion = () =>
  scalar({ type: "string", pattern: "^\\d{1,3}(\\.\\d{1,3}){2}$" }, (source) =>
    /^\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(source) && source.split(".").every((part) => Number(part) <= 255)
      ? source
      : new Fault("expected three numbers up to 255, such as 26.7.28"),
  );

const MLDSA65_TEXT = /^[A-Za-z0-9_-]{2603}=?$/;

/** The key by which a server signs with ML-DSA-65, as Xray prints it. */
const mldsa65Key = () =>
  scalar({ type: "string" }, (source) =>
    source === "" || MLDSA65_TEXT.test(source)
      ? source
      : new Fault("expected an ML-DSA-65 public key: 1952 bytes in base64url"),
  );

const realityOptions = z.object({
  "public-key": publicKey(),
  "short-id": shortId().default(""),
  "support-x25519mlkem768": flag().default(false),
  "client-version": clientVersion().optional(),
  "client-ver": clientVersion().optional(),
  "mldsa65-verify": mldsa65Key().optional(),
  "spider-x": text().optional(),
});

/** Keys of every node that may speak TLS. The name of the server is `sni` or `servername`, each protocol adds its own. */
export const tlsClientFields = {
  alpn: list(name()).optional(),
  "skip-cert-verify": flag().default(false),
  fingerprint: unsetAs(fingerprint(), undefined).optional(),
  "name-cert-verify": text().optional(),
  "client-fingerprint": text().optional(),
  certificate: pem().optional(),
  "private-key": pem().optional(),
  "ech-opts": echOptions.optional(),
  // What other clients wrap a node in; without it its traffic would show what it is.
  "reality-opts": unsupported(NO_REALITY),
};

/** For the protocols whose security layer may be REALITY. */
export const realityClientFields = { "reality-opts": realityOptions.optional() };

/** Keys of every listener that may speak TLS. */
export const tlsServerFields = {
  acme: certifiedNames(),
  certificate: pem().optional(),
  "private-key": pem().optional(),
  "client-auth-type": choice(CLIENT_AUTH_TYPES).default(""),
  "client-auth-cert": pem().optional(),
  "ech-key": pem().optional(),
  "reality-config": unsupported(NO_REALITY),
};

const limit = z.object({
  "after-bytes": int(0).default(0),
  "bytes-per-sec": int(0).default(0),
  "burst-bytes-per-sec": int(0).default(0),
});

const privateKey = () =>
  scalar({ type: "string", format: "password" }, (source) =>
    /^[A-Za-z0-9_-]{43}=?$/.test(source)
      ? source
      : new Unsupported(
          "expected an X25519 private key: 32 bytes in base64url (weir generate reality-keypair)",
        ),
  );

const mldsa65Seed = () =>
  scalar({ type: "string", format: "password" }, (source) =>
    source === "" || /^[A-Za-z0-9_-]{43}=?$/.test(source)
      ? source
      : new Unsupported("expected an ML-DSA-65 seed: 32 bytes in base64url (weir generate mldsa65)"),
  );

const realityConfig = z.object({
  dest: destination(),
  "private-key": privateKey(),
  "short-id": list(shortId()).default([""]),
  "server-names": list(text()),
  "max-time-difference": int(0).default(0),
  proxy: text().default(""),
  xver: int(0, 2).default(0),
  "mldsa65-seed": mldsa65Seed().default(""),
  "limit-fallback-upload": limit.optional(),
  "limit-fallback-download": limit.optional(),
});

/** For listeners whose security layer may be REALITY. */
export const realityServerFields = { "reality-config": realityConfig.optional() };

/** Of a listener's options: the way to dest, where that is an outbound. */
export function outboundsOfReality(options: object): readonly NamedOutbound[] {
  const reality = "reality-config" in options ? options["reality-config"] : null;
  const isSet = typeof reality === "object" && reality !== null && "proxy" in reality;
  if (!isSet || typeof reality.proxy !== "string" || reality.proxy === "") return [];
  return [{ path: ["reality-config", "proxy"], name: reality.proxy }];
}

const tlsClientSchema = z.object(tlsClientFields);
const tlsServerSchema = z.object(tlsServerFields);
/** With REALITY only where the protocol has it: `realityClientFields`. */
export type TlsClientFields = Omit<z.output<typeof tlsClientSchema>, "reality-opts"> & {
  readonly "reality-opts"?: RealityClientFields | undefined;
};
export type TlsServerFields = Omit<z.output<typeof tlsServerSchema>, "reality-config" | "acme">;
export type RealityServerFields = z.output<typeof realityConfig>;
export type EchClientFields = z.output<typeof echOptions>;
export type FallbackLimit = z.output<typeof limit>;
export type RealityClientFields = z.output<typeof realityOptions>;

/** A map of header names to values, as `ws-opts.headers` has it. */
export const headerMap = () => mapOf(text());
