import { randomBytes } from "node:crypto";
import type { UserSupport } from "#core/protocol.ts";
import { shareLink } from "#protocols/shared/links/managed-link.ts";
import { writtenPasswords } from "#protocols/shared/written-passwords.ts";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import type { InboundOptions } from "./options.ts";

/** Users that come and go while a hysteria2 listener runs. */
export const managedUsers: UserSupport<InboundOptions> = {
  label: "Hysteria2",
  network: "udp",
  isAdditional: true,
  credential: "password",
  flows: [],
  makeCredential: () => randomBytes(32).toString("base64url"),
  identify: (credential) => (credential === "" ? null : credential),
  written: (options) => writtenPasswords(options.users),
  emptied: (options) => ({ ...options, users: {} }),
  shareLink(options, address, { name, credential }) {
    const { obfs, alpn = [HTTP3_ALPN] } = options;
    if (!alpn.includes(HTTP3_ALPN)) return null; // a link cannot say another one
    const disguise = obfs === "" ? {} : { obfs, "obfs-password": options["obfs-password"] };
    const query = { sni: address.host, ...disguise };
    return shareLink({ scheme: "hysteria2", credential: [credential], address, query, name });
  },
  decoyLink: "hysteria2://none@192.0.2.1:443?sni=192.0.2.1#nobody",
};
