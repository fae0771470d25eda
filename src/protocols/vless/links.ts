/** Nodes of this protocol as share links (share-links.md §3) and as other programs write them. */
import type { LinkedUser, PublicAddress } from "#core/protocol.ts";
import type { LinkForm, LinkNode, ListenerContext, SingBoxOutbound } from "#core/share-link.ts";
import { joinLink } from "#protocols/shared/links/grammar.ts";
import { common, needUser, server } from "#protocols/shared/links/node.ts";
import { clientNodes, isOverQuicAlone, tunedKeys, usersOf } from "#protocols/shared/links/listener.ts";
import { securityQuery, shareLink } from "#protocols/shared/links/managed-link.ts";
import { singBoxHead, singBoxTls, singBoxTransport } from "#protocols/shared/links/sing-box.ts";
import {
  securityFields,
  streamQuery,
  textOf,
  transportFields,
  fieldsOf,
} from "#protocols/shared/links/stream.ts";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import { clientSetting, readServerEncryption, type ServerEncryption } from "./encryption/settings.ts";
import type { InboundOptions } from "./options.ts";

export const links: LinkForm = {
  schemes: ["vless"],
  read(link) {
    const encryption = link.query.get("encryption") ?? "none";
    const flow = link.query.get("flow")?.toLowerCase();
    const packets = link.query.get("packetencoding");
    return {
      ...server(link, "vless"),
      uuid: needUser(link),
      ...(encryption === "none" ? {} : { encryption }),
      ...(flow === undefined ? {} : { flow }),
      ...(packets === undefined ? {} : { "packet-encoding": packets === "packet" ? "packetaddr" : packets }),
      ...securityFields(link.query, "none", "servername"),
      ...transportFields(link.query),
    };
  },
  write: (node) =>
    joinLink({
      scheme: "vless",
      user: encodeURIComponent(String(node["uuid"])),
      ...common(node),
      query: {
        encryption: textOf(node["encryption"]) || "none",
        flow: textOf(node["flow"]),
        ...streamQuery(node, "servername", node["tls"] === true),
      },
    }),
};

/** One node a user. */
export function listenerNodes(options: object, listener: ListenerContext): readonly LinkNode[] {
  const users = usersOf(fieldsOf(options)["users"]);
  const encryption = clientSettingOf(options);
  const clients = users.map(({ user, uuid, flow }) => ({ user, type: "vless", uuid, flow, encryption }));
  return clientNodes(options, listener, clients, "servername");
}

/** The link of a managed user, byte for byte as the admin API promises it; null where no link would work. */
export function managedLink(
  options: InboundOptions,
  address: PublicAddress,
  { name, credential, flow }: LinkedUser,
): string | null {
  if (isBeyondLinks(options)) return null;
  const query = {
    encryption: clientSettingOf(options),
    ...carrierQuery(options),
    ...(flow === "" ? {} : { flow }),
    ...securityQuery(options, address),
  };
  return shareLink({ scheme: "vless", credential: [credential], address, query, name });
}

/** What clients of the listener write into `encryption`. */
function clientSettingOf({ decryption = "" }: { readonly decryption?: string }): string {
  const settings = readServerEncryption(decryption) as ServerEncryption | null;
  return settings === null ? "none" : clientSetting(settings);
}

/** A client that knows the link alone would not agree with the listener about its carrier. */
function isBeyondLinks(options: InboundOptions): boolean {
  const { type } = carrierQuery(options);
  const xhttp = options["xhttp-config"];
  return type === "xhttp" && xhttp !== undefined && tunedKeys(xhttp).length > 0;
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
    return {
      type: "xhttp",
      path: base,
      ...(host === "" ? {} : { host }),
      ...(mode === "" ? {} : { mode }),
      ...(isOverQuicAlone(options.alpn) ? { alpn: HTTP3_ALPN } : {}),
    };
  }
  const h2 = options["h2-config"];
  if (h2 === undefined) return { type: "tcp" };
  const [host] = h2.host;
  return { type: "http", path: h2.path, ...(host === undefined ? {} : { host }) };
}

/** Null: encryption, and some transports, do not exist there. */
export function singBox(node: LinkNode): SingBoxOutbound | null {
  const transport = singBoxTransport(node);
  if (transport === null || (node["encryption"] ?? "none") !== "none") return null;
  const { uuid, flow } = node;
  return {
    ...singBoxHead("vless", node),
    uuid,
    ...(flow === undefined ? {} : { flow }),
    ...(node["tls"] === true ? { tls: singBoxTls(node) } : {}),
    ...transport,
  };
}
