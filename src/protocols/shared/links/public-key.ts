import { isPemText } from "#core/files.ts";
import { configsOfKeys } from "#transport/tls13/ech/keys.ts";
import { createPrivateKey, createPublicKey } from "node:crypto";

/** PKCS #8 of an X25519 key (RFC 8410 §7) up to the 32 bytes of the key itself. */
const X25519_HEAD = Buffer.from("302e020100300506032b656e04220420", "hex");

/** X25519 public key in unpadded base64url, from the private key in the same form. */
export function publicKeyOf(privateKey: string): string {
  const der = Buffer.concat([X25519_HEAD, Buffer.from(privateKey, "base64url")]);
  const key = createPublicKey(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
  const { x } = key.export({ format: "jwk" });
  if (x === undefined) throw new TypeError("a public key without its bytes");
  return x;
}

/**
 * What clients are told of a listener's `ech-key`, in base64; null: nothing. A key in a file is not read here, and its
 * clients are as those that hide nothing.
 */
export function publishedEch(key = ""): string | null {
  if (!isPemText(key)) return null;
  try {
    return configsOfKeys(key).toString("base64");
  } catch {
    return null; // such a listener is not there
  }
}
