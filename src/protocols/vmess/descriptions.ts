/** What the keys mean that only this protocol has, or that mean something else here. */
import type { Descriptions } from "#core/key-descriptions.ts";

export const descriptions: Descriptions = {
  alterId: ["Above 0 the user's old form of authentication is used, or accepted.", 0],
  xudp: "Older form of `packet-encoding: xudp`.",
  "packet-addr": "Older form of `packet-encoding: packetaddr`.",
  "global-padding": "Whether pieces have random lengths.",
  "authenticated-length": "Whether the lengths of pieces are sealed, too.",
};
