/** Who is let in: a ClientHello whose session id holds a token for the server's key. */
import { EXTENSION, readProtocols } from "#transport/tls13/extensions.ts";
import { offersTls13, serverNameOf } from "#transport/tls13/hello-choice.ts";
import { decodeClientHello, readKeyShares } from "#transport/tls13/hello-messages.ts";
import { agreeWithShares, type X25519Agreement } from "#transport/tls13/key-exchange.ts";
import { openToken } from "#transport/reality/token.ts";

export interface AdmissionRules {
  readonly privateKey: X25519Agreement;
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
  const list = extensions.get(EXTENSION.keyShare);
  if (sessionId.length !== SESSION_ID_BYTES || list === undefined || !offersTls13(extensions)) return null;
  const serverName = serverNameOf(extensions);
  if (!rules.serverNames.has(serverName)) return null;
  const shares = readKeyShares(list);
  const shared = agreeWithShares(rules.privateKey, shares);
  const token = shared === null ? null : openToken(hello, shared);
  if (token === null || !rules.shortIds.has(token.shortId)) return null;
  const most = rules.maxTimeDifferenceMs;
  if (most > 0 && !(Math.abs(token.timeMs - nowMs) <= most)) return null; // nor by a clock that is not known
  const alpn = extensions.get(EXTENSION.alpn);
  const protocols = alpn === undefined ? [] : readProtocols(alpn);
  return { hello, shares, sessionId, authKey: token.authKey, serverName, protocols };
}
