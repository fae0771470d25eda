/** From the configuration to a release folder that can be asked. */
import type { SafeFiles } from "#core/files.ts";
import { readPublicKey } from "./manifest.ts";
import { ReleaseSource, type ReleaseSourceOptions } from "./release-source.ts";
import { UpdateError } from "./update-error.ts";

export interface UpdateSettings {
  readonly url: string;
  /** PEM text, or a path. */
  readonly publicKey: string;
}

export type Way = Pick<ReleaseSourceOptions, "dialer" | "trust" | "userAgent">;

/** Rejects with `UpdateError` where there is no block `update`, and `ConfigError` where its key cannot be read. */
export async function openReleaseSource(
  settings: UpdateSettings | null,
  files: Pick<SafeFiles, "readPem">,
  way: Way,
): Promise<ReleaseSource> {
  if (settings === null)
    throw new UpdateError(
      "the configuration has no block update: set update.url, where releases are, and update.public-key, whose they are",
    );
  const { url, publicKey } = settings;
  const key = readPublicKey(await files.readPem(publicKey), "update.public-key");
  return new ReleaseSource({ url, key, ...way });
}
