/** `ss://`: SIP002, the older form that is base64 as a whole, and SIP008 documents. */
import { ConfigError } from "#core/errors.ts";
import type { Link, LinkForm, LinkNode, ListenerContext } from "#core/share-link.ts";
import { decodeBase64, isTrue, joinLink, needPort, splitAuthority } from "#protocols/shared/links/grammar.ts";
import { clientNodes } from "#protocols/shared/links/listener.ts";
import { mapOf, textOf, fieldsOf } from "#protocols/shared/links/stream.ts";

export const links: LinkForm = {
  schemes: ["ss"],
  read(link) {
    const { credentials, host, port } =
      link.user === "" ? wholeOf(link) : { ...link, credentials: credentialsOf(link), port: needPort(link) };
    const [cipher, password] = splitOnce(credentials);
    return {
      name: link.name,
      type: "ss",
      server: host,
      port,
      cipher,
      password,
      udp: true,
      ...(isTrue(link.query.get("uot")) || isTrue(link.query.get("udp-over-tcp"))
        ? { "udp-over-tcp": true }
        : {}),
      ...pluginFields(link.query.get("plugin")),
    };
  },
  write(node) {
    const [cipher, password] = [String(node["cipher"]), String(node["password"])];
    // The keys of 2022 methods are base64 themselves and are written as text (SIP022).
    const user = cipher.startsWith("2022-")
      ? `${cipher}:${encodeURIComponent(password)}`
      : Buffer.from(`${cipher}:${password}`).toString("base64url");
    const plugin = pluginText(node);
    return joinLink({
      scheme: "ss",
      user,
      host: String(node["server"]),
      port: Number(node["port"]),
      ...(plugin === undefined ? {} : { path: "/" as const }),
      query: { plugin, uot: node["udp-over-tcp"] === true ? "1" : undefined },
      name: String(node["name"]),
    });
  },
  readDocument: sip008Nodes,
};

function credentialsOf({ user }: Link): string {
  if (user.includes(":")) return user;
  return decodeBase64(user) ?? user;
}

/** ss://base64(method:password@host:port) */
function wholeOf({ body }: Link): { credentials: string; host: string; port: number } {
  const text = decodeBase64(body) ?? "";
  const at = text.lastIndexOf("@");
  if (at < 0) throw new ConfigError("the link has no credentials");
  const authority = splitAuthority(text.slice(at + 1));
  if (authority.port === null) throw new ConfigError("the link has no port");
  return { credentials: text.slice(0, at), host: authority.host, port: authority.port };
}

function splitOnce(text: string): readonly [string, string] {
  const colon = text.indexOf(":");
  if (colon < 0) throw new ConfigError("the link has no password");
  return [text.slice(0, colon), text.slice(colon + 1)];
}

function pluginFields(text: string | undefined): LinkNode {
  if (text === undefined) return {};
  const [name = "", ...pairs] = text.split(";");
  const options = new Map(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      return at < 0 ? [pair, "true"] : [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
  if (name === "obfs-local" || name === "simple-obfs")
    return {
      plugin: "obfs",
      "plugin-opts": { mode: options.get("obfs") ?? "", ...hostOf(options.get("obfs-host")) },
    };
  if (name === "v2ray-plugin")
    return {
      plugin: name,
      "plugin-opts": {
        mode: options.get("mode") ?? "websocket",
        ...hostOf(options.get("host")),
        ...(options.has("path") ? { path: options.get("path") } : {}),
        ...(options.has("tls") ? { tls: true } : {}),
      },
    };
  return { plugin: name, "plugin-opts": Object.fromEntries(options) };
}

function hostOf(host: string | undefined): LinkNode {
  return host === undefined ? {} : { host };
}

function pluginText(node: LinkNode): string | undefined {
  const options = mapOf(node["plugin-opts"]) ?? {};
  const host = textOf(options["host"]);
  if (node["plugin"] === "obfs")
    return ["obfs-local", `obfs=${textOf(options["mode"])}`, ...(host ? [`obfs-host=${host}`] : [])].join(
      ";",
    );
  if (node["plugin"] === "v2ray-plugin")
    return ["v2ray-plugin", "mode=websocket", ...(host ? [`host=${host}`] : [])].join(";");
  return undefined;
}

/** The nodes of a SIP008 document; null where the text is none. */
function sip008Nodes(text: string): LinkNode[] | null {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return null; // some other form
  }
  const servers = mapOf(document)?.["servers"];
  if (!Array.isArray(servers)) return null;
  return servers.flatMap((item: unknown) => {
    const entry = mapOf(item);
    if (entry === null) return [];
    const { remarks, server, server_port: port, password, method }: Record<string, unknown> = entry;
    return [
      {
        name: textOf(remarks) ?? `${textOf(server)}:${textOf(port)}`,
        type: "ss",
        server,
        port,
        cipher: method,
        password,
        udp: true,
      },
    ];
  });
}

/** Keys of users of a 2022 method follow the server's key. */
export function listenerNodes(options: object, listener: ListenerContext): readonly LinkNode[] {
  const { cipher, password, users } = fieldsOf(options);
  const node = { type: "ss", cipher };
  if (!Array.isArray(users) || users.length === 0)
    return clientNodes(options, listener, [{ user: null, ...node, password }]);
  const clients = users.map((item: unknown) => {
    const entry = mapOf(item) ?? {};
    const own = String(entry["credential"]);
    const is2022 = String(cipher).startsWith("2022-");
    return {
      user: textOf(entry["id"]) ?? null,
      ...node,
      password: is2022 ? `${String(password)}:${own}` : own,
    };
  });
  return clientNodes(options, listener, clients);
}
