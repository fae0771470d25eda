import { randomBytes } from "node:crypto";
import type { UserSupport } from "#core/protocol.ts";
import { writtenPasswords } from "#protocols/shared/written-passwords.ts";
import { managedLink } from "./links.ts";
import type { InboundOptions } from "./options.ts";

/** Users that come and go while an anytls listener runs. */
export const managedUsers: UserSupport<InboundOptions> = {
  label: "AnyTLS",
  network: "tcp",
  isAdditional: false,
  credential: "password",
  flows: [],
  makeCredential: () => randomBytes(32).toString("base64url"),
  identify: (credential) => (credential === "" ? null : credential),
  written: (options) => writtenPasswords(options.users),
  emptied: (options) => ({ ...options, users: {} }),
  shareLink: (options, context, user) => managedLink(options, context, user),
  decoyLink: "anytls://none@192.0.2.1:443?security=tls&sni=192.0.2.1&type=tcp#nobody",
};
