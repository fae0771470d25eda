import { randomUUID } from "node:crypto";
import type { UserSupport } from "#core/protocol.ts";
import { securityQuery, shareLink } from "#protocols/shared/links/managed-link.ts";
import { XHTTP_TUNING } from "#transport/fields.ts";
import { clientSetting, readServerEncryption, type ServerEncryption } from "./encryption/settings.ts";
import type { InboundOptions } from "./options.ts";
import { parseUserId } from "#protocols/shared/user-id.ts";
import { VISION } from "./wire.ts";

const UUID = /^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

/** Users that come and go while a vless listener runs. */
export const managedUsers: UserSupport = {
  label: "VLESS",
  credential: "uuid",
  flows: [VISION],
  makeCredential: () => randomUUID(),
  identify: (credential) => (UUID.test(credential) ? credential.replaceAll("-", "").toLowerCase() : null),
  written: (options) =>
    (options as InboundOptions).users.map(({ username = "", uuid, flow }) => ({
      name: username,
      credential: uuidText(uuid),
      flow,
    })),
  emptied: (options) => ({ ...options, users: [] }),
  shareLink(options, place, { name, credential, flow }) {
    if (isBeyondLinks(options as InboundOptions)) return null;
    const query = {
      encryption: clientSettingOf(options as InboundOptions),
      ...carrierQuery(options as InboundOptions),
      ...(flow === "" ? {} : { flow }),
      ...securityQuery(options as InboundOptions, place),
    };
    return shareLink({ scheme: "vless", credential, place, query, name });
  },
  decoyLink: "vless://00000000-0000-4000-8000-000000000000@192.0.2.1:443?encryption=none&type=tcp#nobody",
};

/** What clients of the listener write into `encryption`. */
function clientSettingOf({ decryption }: InboundOptions): string {
  const settings = readServerEncryption(decryption) as ServerEncryption | null;
  return settings === null ? "none" : clientSetting(settings);
}

/** A text that is no UUID stands for the one that the listener makes of it. */
function uuidText(credential: string): string {
  if (UUID.test(credential)) return credential;
  const hex = (parseUserId(credential) as Buffer).toString("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** A client that knows the link alone would not agree with the listener about its carrier. */
function isBeyondLinks(options: InboundOptions): boolean {
  const { type } = carrierQuery(options);
  const xhttp = options["xhttp-config"];
  return type === "xhttp" && xhttp !== undefined && XHTTP_TUNING.some((key) => xhttp[key] !== undefined);
}

/** Of several carriers on the one port a link names the first. */
function carrierQuery(options: InboundOptions): Readonly<Record<string, string>> {
  const path = options["ws-path"];
  if (path !== undefined && path !== "") return { type: "ws", path };
  const serviceName = options["grpc-service-name"];
  if (serviceName !== undefined && serviceName !== "") return { type: "grpc", serviceName };
  const xhttp = options["xhttp-config"];
  if (xhttp !== undefined) {
    const { path: base, host, mode } = xhttp;
    return { type: "xhttp", path: base, ...(host === "" ? {} : { host }), ...(mode === "" ? {} : { mode }) };
  }
  const h2 = options["h2-config"];
  if (h2 === undefined) return { type: "tcp" };
  const [host] = h2.host;
  return { type: "http", path: h2.path, ...(host === undefined ? {} : { host }) };
}
