import { generateKeyPairSync } from "node:crypto";
import { type Appearance, clientSetting, readServerEncryption, type ServerEncryption } from "./settings.ts";

/** Both settings of a fresh key, as files have them. The server's is a secret. */
export function newEncryption(
  appearance: Appearance,
  kind: "x25519" | "mlkem768",
): { readonly client: string; readonly server: string } {
  const key =
    kind === "x25519"
      ? generateKeyPairSync("x25519").privateKey.export({ format: "raw-private" })
      : generateKeyPairSync("ml-kem-768").privateKey.export({ format: "raw-seed" });
  const server = `mlkem768x25519plus.${appearance}.600s.${key.toString("base64url")}`;
  return { server, client: clientSetting(readServerEncryption(server) as ServerEncryption) };
}
