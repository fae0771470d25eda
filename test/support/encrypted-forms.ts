import { newEncryption } from "#protocols/vless/encryption/generate.ts";
import { vless } from "#protocols/vless/index.ts";
import type { Form, Options } from "./node-chain.ts";
import { uuid } from "./tls-sides.ts";

/** VLESS with Encryption over the carrier of these options; `more` are of both the node and the user. */
export function encryptedForm(
  appearance: "native" | "xorpub" | "random",
  server: Options,
  client: Options,
  more: Options = {},
): Form {
  const texts = newEncryption(appearance, "x25519");
  return {
    protocol: vless,
    server: { users: [{ username: "ann", uuid, ...more }], decryption: texts.server, ...server },
    client: { uuid, encryption: texts.client, ...client, ...more },
  };
}
