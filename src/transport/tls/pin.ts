import { createHash, X509Certificate } from "node:crypto";
import { checkServerIdentity } from "node:tls";
import { itemAt, lastOf } from "#lib/at.ts";

/** More certificates than a sane chain has; a longer one is not walked. */
const MAX_CHAIN = 10;

/**
 * Pinning replaces chain verification: a leaf with this SHA-256 is taken as it is; an authority with it becomes the
 * only root, and the chain below it, the dates and the name are checked. `shown`: DER, the server's own first, then
 * whatever may have issued it, in any order. Answers null, or why the peer is refused.
 */
export function checkPin(shown: readonly Uint8Array[], pin: string, verifyName: string): string | null {
  const [leaf, ...others] = shown;
  if (leaf === undefined) return "the server showed no certificate";
  if (digestOf(leaf) === pin) return null;
  const chain = chainTo(pin, leaf, others);
  return chain === null
    ? `no certificate of the server has the fingerprint ${pin}`
    : checkChain(chain, verifyName);
}

function digestOf(der: Uint8Array): string {
  return createHash("sha256").update(der).digest("hex");
}

/** From issuer to issuer; of two that could be, the pinned one. Null: none leads there. */
function chainTo(pin: string, leaf: Uint8Array, others: readonly Uint8Array[]): X509Certificate[] | null {
  const pool = others.map((der) => ({
    certificate: new X509Certificate(der),
    isPinned: digestOf(der) === pin,
  }));
  const chain = [new X509Certificate(leaf)];
  while (chain.length < MAX_CHAIN) {
    const last = lastOf(chain);
    const issuers = pool.filter(
      ({ certificate }) =>
        last.checkIssued(certificate) && !chain.some(({ raw }) => raw.equals(certificate.raw)),
    );
    const next = issuers.find(({ isPinned }) => isPinned) ?? issuers[0];
    if (next === undefined) return null;
    chain.push(next.certificate);
    if (next.isPinned) return chain;
  }
  return null;
}

function checkChain(chain: readonly X509Certificate[], verifyName: string): string | null {
  const now = Date.now();
  for (const [index, certificate] of chain.entries()) {
    if (now < Date.parse(certificate.validFrom) || now > Date.parse(certificate.validTo))
      return "a certificate below the pinned authority is outside its dates";
    const issuer = chain[index + 1];
    if (issuer === undefined) continue;
    if (!issuer.ca || !certificate.checkIssued(issuer) || !certificate.verify(issuer.publicKey))
      return "the pinned authority did not sign this chain";
  }
  const leaf = itemAt(chain, 0).toLegacyObject();
  return checkServerIdentity(verifyName, leaf)?.message ?? null;
}
