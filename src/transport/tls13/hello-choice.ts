/** What the accepting side takes of a ClientHello (RFC 8446 §4.1.1). */
import { TlsFault } from "./alerts.ts";
import { cipherSuite, type CipherSuite } from "./cipher-suites.ts";
import { EXTENSION, type Extensions, readProtocols } from "./extensions.ts";
import { type ClientHello, readKeyShares, TLS_1_3 } from "./hello-messages.ts";
import { GROUP } from "./key-exchange.ts";
import { WireReader } from "./wire.ts";

/** The preferred one first. */
const GROUPS = [GROUP.x25519MlKem768, GROUP.x25519, GROUP.p256, GROUP.p384, GROUP.p521] as const;
/** Of `server_name`: a host name (RFC 6066 §3). */
const HOST_NAME = 0;

export interface HelloChoice {
  readonly suite: CipherSuite;
  readonly group: number;
  /** The client's half; null: the client has to be asked for it. */
  readonly share: Buffer | null;
  /** Signature schemes that the client takes, in its order. */
  readonly schemes: readonly number[];
  /** The protocol that both sides have (ALPN); null: one of them has none. */
  readonly alpn: string | null;
  /** Lower case; empty: the hello had none. */
  readonly serverName: string;
}

/** `protocols`: ours, the preferred one first. Throws `TlsFault` where nothing fits. */
export function chooseFromHello(
  { suites, extensions }: ClientHello,
  protocols: readonly string[],
): HelloChoice {
  if (!offersTls13(extensions)) throw new TlsFault("protocol_version", "the client speaks no TLS 1.3");
  const suite = suites.map(cipherSuite).find((one) => one !== null);
  if (!suite) throw new TlsFault("handshake_failure", "no cipher suite that both sides have");
  return {
    suite,
    ...chooseGroup(extensions),
    schemes: numbers16(extensions, EXTENSION.signatureAlgorithms),
    alpn: chooseProtocol(extensions.get(EXTENSION.alpn), protocols),
    serverName: serverNameOf(extensions),
  };
}

/** Throws `TlsFault`. */
export function offersTls13(extensions: Extensions): boolean {
  const versions = extensions.get(EXTENSION.supportedVersions);
  return (
    versions !== undefined && new WireReader(versions, "supported_versions").numbers8().includes(TLS_1_3)
  );
}

/** A group whose share is there goes before one that has to be asked for. */
function chooseGroup(extensions: Extensions): Pick<HelloChoice, "group" | "share"> {
  const offered = numbers16(extensions, EXTENSION.supportedGroups);
  const body = extensions.get(EXTENSION.keyShare);
  if (body === undefined) throw new TlsFault("missing_extension", "ClientHello without key_share");
  const shares = readKeyShares(body);
  const known = GROUPS.filter((group) => offered.includes(group));
  const group = known.find((one) => shares.has(one)) ?? known[0];
  if (group === undefined) throw new TlsFault("handshake_failure", "no group that both sides have");
  return { group, share: shares.get(group) ?? null };
}

function chooseProtocol(body: Buffer | undefined, protocols: readonly string[]): string | null {
  if (body === undefined || protocols.length === 0) return null;
  const offered = readProtocols(body);
  const found = protocols.find((one) => offered.includes(one));
  if (found === undefined)
    throw new TlsFault("no_application_protocol", "no protocol (ALPN) that both sides have");
  return found;
}

function numbers16(extensions: Extensions, type: number): number[] {
  const body = extensions.get(type);
  if (body === undefined) throw new TlsFault("missing_extension", `ClientHello without extension ${type}`);
  return new WireReader(body, "ClientHello").numbers16();
}

/** The host name in SNI, lower case; empty: none. Throws `TlsFault`. */
export function serverNameOf(extensions: Extensions): string {
  const body = extensions.get(EXTENSION.serverName);
  if (body === undefined) return "";
  const names = new WireReader(new WireReader(body, "server_name").vector16(1), "server_name");
  while (names.left > 0) {
    const type = names.u8();
    const name = names.vector16(1).toString("latin1");
    if (type === HOST_NAME) return name.toLowerCase();
  }
  return "";
}
