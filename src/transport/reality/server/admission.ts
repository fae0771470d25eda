/** Who is let in: a ClientHello whose session id holds a token for the server's key. */
import type { KeyObject } from "node:crypto";
import { EXTENSION, readProtocols } from "#transport/tls13/extensions.ts";
import { decodeClientHello, readKeyShares, TLS_1_3 } from "#transport/tls13/hello-messages.ts";
import { agreeWithShares } from "#transport/tls13/key-exchange.ts";
import { WireReader } from "#transport/tls13/wire.ts";
import { openToken } from "#transport/reality/token.ts";

export interface AdmissionRules {
  readonly privateKey: KeyObject;
  /** Lower case; the empty name stands for hellos without one. */
  readonly serverNames: ReadonlySet<string>;
  /** 8 bytes in hex each. */
  readonly shortIds: ReadonlySet<string>;
  /** By how much the client's clock may differ; 0: by anything. */
  readonly maxTimeDifferenceMs: number;
}

export interface Admitted {
  /** The whole message. */
  readonly hello: Buffer;
  readonly shares: ReadonlyMap<number, Buffer>;
  readonly sessionId: Buffer;
  readonly authKey: Buffer;
  /** Empty: the hello had none. */
  readonly serverName: string;
  /** What the hello offers, the preferred one first; empty: no ALPN. */
  readonly protocols: readonly string[];
}

const SESSION_ID_BYTES = 32;
/** Of `server_name`: a host name (RFC 6066 §3). */
const HOST_NAME = 0;

/** `hello`: the whole message. Null: it is dest's business. Never throws. */
export function admit(hello: Buffer, rules: AdmissionRules, nowMs: number): Admitted | null {
  try {
    return readAdmitted(hello, rules, nowMs);
  } catch {
    return null; // whatever is wrong with it, dest has the answer
  }
}

function readAdmitted(hello: Buffer, rules: AdmissionRules, nowMs: number): Admitted | null {
  const { sessionId, extensions } = decodeClientHello(hello.subarray(4));
  const versions = extensions.get(EXTENSION.supportedVersions);
  const list = extensions.get(EXTENSION.keyShare);
  if (sessionId.length !== SESSION_ID_BYTES || versions === undefined || list === undefined) return null;
  if (!new WireReader(versions, "supported_versions").numbers8().includes(TLS_1_3)) return null;
  const serverName = readServerName(extensions.get(EXTENSION.serverName));
  if (!rules.serverNames.has(serverName)) return null;
  const shares = readKeyShares(list);
  const shared = agreeWithShares(rules.privateKey, shares);
  const token = shared === null ? null : openToken(hello, shared);
  if (token === null || !rules.shortIds.has(token.shortId)) return null;
  const most = rules.maxTimeDifferenceMs;
  if (most > 0 && Math.abs(token.timeMs - nowMs) > most) return null;
  const alpn = extensions.get(EXTENSION.alpn);
  const protocols = alpn === undefined ? [] : readProtocols(alpn);
  return { hello, shares, sessionId, authKey: token.authKey, serverName, protocols };
}

function readServerName(body: Buffer | undefined): string {
  if (body === undefined) return "";
  const names = new WireReader(new WireReader(body, "server_name").vector16(1), "server_name");
  while (names.left > 0) {
    const type = names.u8();
    const name = names.vector16(1).toString("latin1");
    if (type === HOST_NAME) return name.toLowerCase();
  }
  return "";
}
