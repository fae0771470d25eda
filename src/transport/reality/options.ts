/** REALITY's keys of a node as the handshake needs them. */
import type { RealityOptions } from "#core/tls.ts";
import type { RealityClientFields } from "#transport/tls/fields.ts";

/** What a present Xray calls itself: its servers refuse what is older than 26.3.27. */
const CLIENT_VERSION = "26.7.28";
const SHORT_ID_BYTES = 8;

/** Null: the node does not use it. */
export function readReality(fields: RealityClientFields | undefined): RealityOptions | null {
  if (fields === undefined) return null;
  const version = fields["client-version"] ?? fields["client-ver"] ?? CLIENT_VERSION;
  const [x = 0, y = 0, z = 0] = version.split(".").map(Number);
  const shortId = Buffer.alloc(SHORT_ID_BYTES);
  shortId.write(fields["short-id"], "hex");
  const mldsa65 = fields["mldsa65-verify"] ?? "";
  const page = fields["spider-x"] ?? "";
  return {
    publicKey: Buffer.from(fields["public-key"], "base64url"),
    shortId,
    clientVersion: [x, y, z],
    hybrid: fields["support-x25519mlkem768"],
    mldsa65: mldsa65 === "" ? null : Buffer.from(mldsa65, "base64url"),
    spiderX: page.startsWith("/") ? page : `/${page}`,
  };
}
