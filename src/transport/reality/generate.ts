/** What `weir generate` prints for REALITY. */
import { createPublicKey, generateKeyPairSync, randomBytes } from "node:crypto";
import type { KeyMaterial } from "#core/protocol.ts";
import { mldsa65Key } from "./server/own-certificate.ts";

const MLDSA65_PUBLIC_BYTES = 1952;
const SHORT_ID_BYTES = 8;

/** What a listener needs, by the keys of the file, and the public key of its clients. */
export function realityKeys(): Readonly<Record<"private-key" | "public-key" | "short-id", string>> {
  const { d = "", x = "" } = generateKeyPairSync("x25519").privateKey.export({ format: "jwk" });
  return { "private-key": d, "public-key": x, "short-id": newShortId() };
}

const newShortId = (): string => randomBytes(SHORT_ID_BYTES).toString("hex");

const keyPair: KeyMaterial = {
  kind: "reality-keypair",
  forms: [],
  make() {
    const keys = realityKeys();
    return `private-key: ${keys["private-key"]}\npublic-key: ${keys["public-key"]}\n`;
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
  make: () => `${newShortId()}\n`,
};

export const realityKeyMaterial: readonly KeyMaterial[] = [keyPair, shortId, mldsa65];
