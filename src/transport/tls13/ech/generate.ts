/** What `weir generate ech-keypair NAME` prints. */
import { ConfigError } from "#core/errors.ts";
import type { KeyMaterial } from "#core/protocol.ts";
import { isPublicName } from "./config.ts";
import { generateEchKeyPair } from "./keys.ts";

export const echKeyMaterial: KeyMaterial = {
  kind: "ech-keypair",
  forms: [],
  argument: "NAME",
  make(name) {
    if (!isPublicName(name))
      throw new ConfigError(
        "ech-keypair: expected the host name that everybody may see, such as www.example.com",
      );
    const { config, key } = generateEchKeyPair(name);
    const lines = key.trimEnd().split("\n");
    return `ech-opts: { enable: true, config: ${config} }\nech-key: |\n${lines.map((line) => `  ${line}\n`).join("")}`;
  },
};
