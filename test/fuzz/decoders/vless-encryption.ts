/** VLESS Encryption: records altered on the wire, and settings. */
import { randomBytes } from "node:crypto";
import { type CipherName, CountedAead, openMask } from "#protocols/vless/encryption/cipher.ts";
import { HeaderMask } from "#protocols/vless/encryption/leaving.ts";
import { newEncryption } from "#protocols/vless/encryption/generate.ts";
import { RecordCodec } from "#protocols/vless/encryption/records.ts";
import { readClientEncryption, readServerEncryption } from "#protocols/vless/encryption/settings.ts";
import { codec, once, type Target } from "./kinds.ts";

const CONTEXT = randomBytes(32);
const KEY = randomBytes(96);
const IV = randomBytes(16);
const NOTHING = Buffer.alloc(0);

/** Reads what the same keys wrote. */
function records(cipher: CipherName, isMasked: boolean): RecordCodec {
  const side = () => ({
    aead: new CountedAead(cipher, CONTEXT, KEY),
    mask: isMasked ? openMask(KEY, IV) : null,
  });
  return new RecordCodec({ writing: side(), prelude: NOTHING, opening: side });
}

function recordTarget(cipher: CipherName, isMasked: boolean): Target {
  const writer = records(cipher, isMasked);
  const seed = Buffer.concat([writer.seal(Buffer.from("some payload")), writer.seal(Buffer.alloc(9000, 7))]);
  return codec(`VLESS Encryption, ${cipher}${isMasked ? ", masked" : ""}`, [seed], () =>
    records(cipher, isMasked),
  );
}

const { client, server } = newEncryption("random", "x25519");

export const vlessEncryptionTargets: readonly Target[] = [
  recordTarget("aes-256-gcm", false),
  recordTarget("chacha20-poly1305", true),
  {
    name: "VLESS Encryption, masks left on",
    seeds: [Buffer.from("170303000401020304150303000201001703034000", "hex")],
    run(pieces) {
      const mask = new HeaderMask(openMask(KEY, IV), "unmasks");
      for (const piece of pieces)
        if (mask.apply(piece).length !== piece.length) throw new TypeError("a mask changes no length");
    },
  },
  once("VLESS Encryption, settings", [Buffer.from(client), Buffer.from(server)], (bytes) => {
    const text = bytes.toString("latin1");
    readClientEncryption(text);
    readServerEncryption(text);
  }),
];
