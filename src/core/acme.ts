/** Certificates that an authority issues by ACME (RFC 8555): what a configuration asks for, and where it is kept. */
import { createHash } from "node:crypto";
import { domainToASCII } from "node:url";
import { join } from "node:path";
import { Fault, list, scalar, show } from "./fields.ts";
import type { KeyPair } from "./tls.ts";

export const CHALLENGES = ["http-01", "tls-alpn-01"] as const;
export type ChallengeType = (typeof CHALLENGES)[number];

export interface AcmeSettings {
  /** Where the authority may write to; empty: nowhere. */
  readonly email: string;
  /** URL of the authority's directory. */
  readonly directory: string;
  /** PEM text or path of what the directory's own certificate is checked by, besides the known authorities. */
  readonly ca: string | null;
  /** For keys and certificates: inside the home directory or a safe path. */
  readonly folder: string;
  readonly challenge: ChallengeType;
  /** Where HTTP-01 is answered; an empty host: on every address. */
  readonly listen: { readonly host: string; readonly port: number };
  /** The outbound that requests to the authority leave by; empty: DIRECT. */
  readonly proxy: string;
}

/** One certificate, for one listener or several that ask for the same names. */
export interface WantedCertificate {
  /** Named in messages: `listener edge`. */
  readonly owner: string;
  /** Lower case, the first one is what the certificate is called. */
  readonly names: readonly string[];
  /** With the certificate, its chain and its key; as `SafeFiles.resolve` takes it. */
  readonly file: string;
}

/** What answers the validation of names in TLS-ALPN-01 (RFC 8737). */
export interface TlsChallenges {
  /** No validation is going on. */
  readonly isEmpty: boolean;
  /** The certificate that proves control of this name; null: none is asked for. */
  pairFor(serverName: string): KeyPair | null;
  /** Calls `onChange` when `isEmpty` has changed. */
  watch(onChange: () => void): Disposable;
}

export const NO_CHALLENGES: TlsChallenges = {
  isEmpty: true,
  pairFor: () => null,
  watch: () => ({ [Symbol.dispose]() {} }),
};

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const LONGEST_NAME = 253;
/** More are in no certificate of the known authorities. */
const MOST_NAMES = 100;

const certifiedName = () =>
  scalar({ type: "string", minLength: 1 }, (source, raw) => {
    if (source.startsWith("*."))
      return new Fault(`expected a host name, got ${show(raw)}: wildcards need DNS-01, which is not spoken`);
    const ascii = domainToASCII(source.trim().replace(/\.$/, ""));
    const labels = ascii.split(".");
    const fits = ascii.length <= LONGEST_NAME && labels.every((label) => LABEL.test(label));
    return fits && !/^[0-9]+$/.test(labels.at(-1) ?? "")
      ? ascii
      : new Fault(`expected a host name such as example.com, got ${show(raw)}`);
  });

/** The names of a certificate, as listeners and the `tls` block ask for it; empty: none is asked for. */
export const certifiedNames = () => list(certifiedName()).default([]);

/** Why no certificate can have these names; null: one can. */
export function namesFault(names: readonly string[]): string | null {
  return names.length > MOST_NAMES ? `expected at most ${MOST_NAMES} names, got ${names.length}` : null;
}

/**
 * The folder of one directory: certificates of staging and of production are different files, so that a change from one
 * to the other is a change of the listener.
 */
export function folderOfDirectory({ folder, directory }: Pick<AcmeSettings, "folder" | "directory">): string {
  const { host } = new URL(directory);
  const known = host.replaceAll(/[^a-z0-9.-]/g, "_");
  return join(folder, `${known}-${digestOf(directory)}`);
}

/** Certificates of the same first name and different others are different files. */
export function certificateFile(
  settings: Pick<AcmeSettings, "folder" | "directory">,
  names: readonly string[],
): string {
  const [first = "", ...others] = names;
  const more = others.length === 0 ? "" : `+${others.length}-${digestOf([...names].sort().join(" "))}`;
  return join(folderOfDirectory(settings), `${first.slice(0, 180)}${more}.pem`);
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}
