import { X509Certificate } from "node:crypto";
import { createSecureContext, getCACertificates, type SecureContext } from "node:tls";
import { ConfigError } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Trust } from "#core/trust.ts";

/** The authorities of the runtime alone. */
export const DEFAULT_TRUST: Trust = {
  context: (options) => createSecureContext(options),
  authorities: () => getCACertificates("default"),
};

/** Different settings of different nodes; one more is not kept. */
const MAX_KEPT = 64;
const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * The runtime's authorities and those of `sources` (PEM text, or files, each with one certificate or more). Throws
 * `ConfigError` where one cannot be read; `where` is its key.
 */
export async function openTrust(
  sources: readonly string[],
  files: Pick<SafeFiles, "readPem">,
  where: string,
): Promise<Trust> {
  const added: string[] = [];
  for (const [index, source] of sources.entries())
    added.push(...certificatesIn(await files.readPem(source), `${where}[${index}]`));
  if (added.length === 0) return DEFAULT_TRUST;
  const ca = [...getCACertificates("default"), ...added];
  // With a list of its own a context costs 30 ms and 1.5 MiB, without one next to nothing.
  const kept = new Map<string, SecureContext>();
  return {
    context(options) {
      const key = JSON.stringify(options);
      const known = kept.get(key);
      if (known !== undefined) return known;
      const made = createSecureContext({ ...options, ca });
      if (kept.size < MAX_KEPT) kept.set(key, made);
      return made;
    },
    authorities: () => ca,
  };
}

function certificatesIn(text: string, where: string): readonly string[] {
  const blocks = text.match(BLOCK) ?? [];
  if (blocks.length === 0) throw new ConfigError(`${where}: expected a certificate in PEM, found none`);
  for (const block of blocks) {
    try {
      void new X509Certificate(block);
    } catch (cause) {
      throw new ConfigError(`${where}: a certificate that cannot be read`, { cause });
    }
  }
  return blocks;
}
