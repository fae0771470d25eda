/** The manifest of a release: which version it is and what it has for each platform, signed as a whole. */
import { createPublicKey, verify, type KeyObject } from "node:crypto";
import * as z from "zod";
import { UpdateError } from "./update-error.ts";

export const MOST_MANIFEST_BYTES = 64 * 1024;
/** RFC 8032 §5.1.6 */
export const SIGNATURE_BYTES = 64;
/** Larger than any archive of the program will be. */
const MOST_ARCHIVE_BYTES = 1024 * 1024 * 1024;

const file = z.object({
  /** Beside the manifest. */
  name: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}\.tar\.gz$/),
  size: z.number().int().min(1).max(MOST_ARCHIVE_BYTES),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});
export type ReleaseFile = z.infer<typeof file>;

const manifest = z.object({
  /** A key that signs other things, too, signs no release by that. */
  format: z.literal("weir-release-1"),
  /** It becomes the name of a folder. */
  version: z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/),
  files: z.record(z.string(), file),
});
export type Manifest = z.infer<typeof manifest>;

/** `pem`: an Ed25519 public key. Throws `UpdateError`; `where` says whose key it is. */
export function readPublicKey(pem: string, where: string): KeyObject {
  try {
    const key = createPublicKey(pem);
    if (/BEGIN PUBLIC KEY/.test(pem) && key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // the same sentence as for a key of another kind
  }
  throw new UpdateError(`${where}: expected an Ed25519 public key in PEM, as openssl pkey -pubout prints it`);
}

/** Looks at nothing of `bytes` but the signature before that is right. Throws `UpdateError`. */
export function readManifest(bytes: Uint8Array, signature: Uint8Array, key: KeyObject): Manifest {
  if (signature.length !== SIGNATURE_BYTES)
    throw new UpdateError(
      `the signature has ${signature.length} bytes in place of ${SIGNATURE_BYTES}: expected what openssl pkeyutl -sign -rawin writes`,
    );
  if (!verify(null, bytes, key, signature))
    throw new UpdateError(
      "the signature of the manifest is not by the key in update.public-key: another key, or a changed manifest",
    );
  const read = manifest.safeParse(parsed(bytes));
  if (read.success) return read.data;
  const [{ path, message } = { path: [], message: "" }] = read.error.issues;
  throw new UpdateError(`the manifest is signed and cannot be read: ${path.join(".")}: ${message}`);
}

/** Throws `UpdateError`. */
export function fileFor(platform: string, { files, version }: Manifest): ReleaseFile {
  const found = Object.hasOwn(files, platform) ? files[platform] : undefined;
  if (found !== undefined) return found;
  const known = Object.keys(files).join(", ");
  throw new UpdateError(`version ${version} has nothing for ${platform}, only for ${known || "no platform"}`);
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new UpdateError("the manifest is signed and is no JSON");
  }
}
