import { randomUUID } from "node:crypto";
import type { UserSupport } from "#core/protocol.ts";
import { parseUserId, userIdBytes } from "#protocols/shared/user-id.ts";
import { managedLink } from "./links.ts";
import type { InboundOptions } from "./options.ts";
import { VISION } from "./wire.ts";

const UUID = /^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** Users that come and go while a vless listener runs. */
export const managedUsers: UserSupport<InboundOptions> = {
  label: "VLESS",
  network: "tcp",
  isAdditional: false,
  credential: "uuid",
  flows: [VISION],
  makeCredential: () => randomUUID(),
  identify: (credential) => (UUID.test(credential) ? credential.replaceAll("-", "").toLowerCase() : null),
  derive: (text) => (parseUserId(text) === null ? null : uuidText(text)),
  written: (options) =>
    options.users.map(({ username = "", uuid, flow }) => ({
      name: username,
      credential: uuidText(uuid),
      flow,
    })),
  emptied: (options) => ({ ...options, users: [] }),
  shareLink: (options, context, user) => managedLink(options, context, user),
  decoyLink: "vless://00000000-0000-4000-8000-000000000000@192.0.2.1:443?encryption=none&type=tcp#nobody",
};

/** A text that is no UUID is mapped to the UUID that the listener derives from it. */
function uuidText(credential: string): string {
  if (UUID.test(credential)) return credential;
  const hex = userIdBytes(credential).toString("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
