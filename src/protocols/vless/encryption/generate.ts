import { generateKeyPairSync } from "node:crypto";
import type { KeyMaterial } from "#core/protocol.ts";
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

const APPEARANCES: readonly Appearance[] = ["native", "xorpub", "random"];

/** Both sides of one key, for each kind of key, as lines of YAML; the listener's is a secret. */
export const keyMaterial: KeyMaterial = {
  kind: "vless-encryption",
  forms: APPEARANCES,
  make(form) {
    const appearance = APPEARANCES.find((one) => one === form) ?? "native";
    const keys = (["x25519", "mlkem768"] as const).map((kind) => {
      const { client, server } = newEncryption(appearance, kind);
      return `# ${kind}${kind === "mlkem768" ? ", against quantum computers from the first message on" : ""}\ndecryption: ${server}\nencryption: ${client}\n`;
    });
    return keys.join("\n");
  },
};
