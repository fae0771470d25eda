import { randomBytes } from "node:crypto";
import type { UserSupport } from "#core/protocol.ts";
import { securityQuery, shareLink } from "#protocols/shared/links/managed-link.ts";
import type { InboundOptions } from "./options.ts";

/** Users that come and go while an anytls listener runs. */
export const managedUsers: UserSupport = {
  label: "AnyTLS",
  credential: "password",
  flows: [],
  makeCredential: () => randomBytes(32).toString("base64url"),
  identify: (credential) => (credential === "" ? null : credential),
  written: (options) =>
    Object.entries((options as InboundOptions).users)
      .map(([name, credential]) => ({ name, credential, flow: "" }))
      .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name))),
  emptied: (options) => ({ ...options, users: {} }),
  shareLink(options, place, { name, credential }) {
    const security = securityQuery(options as InboundOptions, place);
    if (Object.keys(security).length === 0) return null; // clients of this protocol always speak TLS
    return shareLink({ scheme: "anytls", credential, place, query: { type: "tcp", ...security }, name });
  },
  decoyLink: "anytls://none@192.0.2.1:443?security=tls&sni=192.0.2.1&type=tcp#nobody",
};
