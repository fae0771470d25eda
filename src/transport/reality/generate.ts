/** What `weir generate` prints for REALITY. */
import { createPublicKey, generateKeyPairSync, randomBytes } from "node:crypto";
import type { KeyMaterial } from "#core/protocol.ts";
import { mldsa65Key } from "./server/own-certificate.ts";

const MLDSA65_PUBLIC_BYTES = 1952;
const SHORT_ID_BYTES = 8;

const keyPair: KeyMaterial = {
  kind: "reality-keypair",
  forms: [],
  make() {
    const { d = "", x = "" } = generateKeyPairSync("x25519").privateKey.export({ format: "jwk" });
    return `private-key: ${d}\npublic-key: ${x}\n`;
  },
};

const mldsa65: KeyMaterial = {
  kind: "mldsa65",
  forms: [],
  make() {
    const seed = randomBytes(32);
    const key = createPublicKey(mldsa65Key(seed)).export({ type: "spki", format: "der" });
    return `mldsa65-seed: ${seed.toString("base64url")}\nmldsa65-verify: ${key.subarray(-MLDSA65_PUBLIC_BYTES).toString("base64url")}\n`;
  },
};

const shortId: KeyMaterial = {
  kind: "short-id",
  forms: [],
  make: () => `${randomBytes(SHORT_ID_BYTES).toString("hex")}\n`,
};

export const realityKeyMaterial: readonly KeyMaterial[] = [keyPair, shortId, mldsa65];
