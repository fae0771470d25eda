import { randomBytes, randomUUID } from "node:crypto";
import type { UserSupport } from "#core/protocol.ts";
import { shareLink } from "#protocols/shared/links/managed-link.ts";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import type { InboundOptions } from "./inbound-options.ts";
import { credentialOf, parseCredential } from "./users.ts";

/** Users that come and go while a tuic listener runs. The credential is `UUID:PASSWORD`, as links have it. */
export const managedUsers: UserSupport<InboundOptions> = {
  label: "TUIC",
  network: "udp",
  isAdditional: true,
  credential: "password",
  flows: [],
  makeCredential: () => credentialOf(randomUUID(), randomBytes(24).toString("base64url")),
  // A client shows its uuid, so no two users may have the same one, whatever their passwords are.
  identify: (credential) => parseCredential(credential)?.uuid.toString("hex") ?? null,
  written: (options) =>
    Object.entries(options.users ?? {}).map(([uuid, password]) => ({
      name: "",
      credential: credentialOf(uuid, password),
      flow: "",
    })),
  emptied: (options) => ({ ...options, users: null }),
  shareLink(options, address, { name, credential }) {
    const found = parseCredential(credential);
    if (found === null) return null;
    const [uuid = ""] = credential.split(":", 1);
    const { alpn = [HTTP3_ALPN] } = options;
    const query = { sni: address.host, alpn: alpn.join(","), udp_relay_mode: "native" };
    return shareLink({ scheme: "tuic", credential: [uuid, found.password], address, query, name });
  },
  decoyLink:
    "tuic://00000000-0000-4000-8000-000000000000:none@192.0.2.1:443?alpn=h3&sni=192.0.2.1&udp_relay_mode=native#nobody",
};
