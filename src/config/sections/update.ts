/** Where newer versions of the program come from. The block's presence turns `weir update` on. */
import { createPublicKey } from "node:crypto";
import { block, Fault, flag, httpUrlFault, scalar, text } from "#core/fields.ts";
import { isPemText } from "#core/files.ts";

/** Names of the release are resolved against it, so that a query would be lost on the way. */
const releaseUrl = () =>
  scalar({ type: "string", format: "uri" }, (source) => {
    const fault = httpUrlFault(source);
    if (fault !== null) return fault;
    if (/[?#]/.test(source)) return new Fault("must not have a query or a fragment");
    return source;
  });

/** PEM text, or the path of a file with it, which is read when it is used. */
const publicKey = () =>
  scalar({ type: "string", "x-weir-file": true }, (source) =>
    !isPemText(source) || isEd25519(source)
      ? source
      : new Fault("expected an Ed25519 public key in PEM, as openssl pkey -pubout prints it"),
  );

/** `text` is PEM of a public key and of nothing else: a private one has no place in a configuration. */
function isEd25519(pemText: string): boolean {
  try {
    return /BEGIN PUBLIC KEY/.test(pemText) && createPublicKey(pemText).asymmetricKeyType === "ed25519";
  } catch {
    return false;
  }
}

export const update = block({
  url: releaseUrl(),
  "public-key": publicKey(),
  proxy: text().default(""),
  "by-controller": flag().default(false),
});
