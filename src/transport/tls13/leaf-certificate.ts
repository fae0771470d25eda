/** The server's own certificate, the first of its chain. */
import { type KeyObject, X509Certificate } from "node:crypto";
import { TlsFault } from "./alerts.ts";
import type { ShownChain } from "./client-handshake.ts";

/** Throws `TlsFault` where it cannot be read. */
export function readLeaf({ chain: [first] }: Pick<ShownChain, "chain">): X509Certificate {
  if (first === undefined) throw new TlsFault("decode_error", "the server showed no certificate");
  try {
    return new X509Certificate(first);
  } catch (cause) {
    throw new TlsFault("bad_certificate", "a certificate that cannot be read", { cause });
  }
}

/** Throws `TlsFault` where the library knows no such key. */
export function keyOfLeaf(leaf: X509Certificate): KeyObject {
  try {
    return leaf.publicKey;
  } catch (cause) {
    throw new TlsFault("unsupported_certificate", "a public key that cannot be read", { cause });
  }
}

/** The judge of those who take any server. */
export function acceptAnybody(shown: ShownChain): KeyObject {
  return keyOfLeaf(readLeaf(shown));
}
