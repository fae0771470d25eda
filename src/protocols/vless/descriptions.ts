/** What the keys mean that only this protocol has, or that mean something else here. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const descriptions: Descriptions = {
  flow: [
    "Empty, or `xtls-rprx-vision`: the sizes of the first records are hidden, and TLS inside is not sealed twice.",
    "xtls-rprx-vision",
  ],
  decryption:
    "Encryption below the header: `none`, or the text that `weir generate vless-encryption` prints for the listener.",
};
