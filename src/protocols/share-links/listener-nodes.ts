/** The nodes that clients of a listener need, one a user. */
import { createPrivateKey, createPublicKey } from "node:crypto";
import type { LinkNode } from "./grammar.ts";
import { mapOf, textOf } from "./stream.ts";

export interface ListenerContext {
  readonly name: string;
  readonly server: string;
  readonly port: number;
  /** The name in the listener's certificate; null: it has none, or no certificate. */
  readonly serverName: string | null;
  /** Who may use listeners of http, socks and mixed that have no users of their own. */
  readonly accounts: readonly { readonly username: string; readonly password: string }[];
}

/** `options` as the listener's schema gives them. Empty for types that have no links. */
export function listenerNodes(type: string, options: object, place: ListenerContext): readonly LinkNode[] {
  const fields = options as LinkNode;
  const { server, port } = place;
  return credentialsOf(type, fields, place).map(({ user, ...own }) => ({
    name: user === null ? place.name : `${place.name} ${user}`,
    server,
    port,
    ...own,
    ...security(type, fields, place),
    ...transport(fields),
  }));
}

type Credentials = LinkNode & { readonly user: string | null };

function credentialsOf(
  type: string,
  fields: LinkNode,
  { accounts }: ListenerContext,
): readonly Credentials[] {
  if (type === "shadowsocks") return shadowsocksCredentials(fields);
  const users = usersOf(fields["users"]);
  if (type === "vless") return users.map(({ user, uuid, flow }) => ({ user, type, uuid, flow }));
  if (type === "vmess")
    return users.map(({ user, uuid }) => ({ user, type, uuid, alterId: 0, cipher: "auto" }));
  if (type === "trojan" || type === "anytls")
    return users.map(({ user, password }) => ({ user, type, password }));
  const open = fields["users"] === undefined ? usersOf(accounts) : users;
  const account = (node: string) =>
    open.length === 0
      ? [{ user: null, type: node }]
      : open.map(({ user, password }) => ({ user, type: node, username: user, password }));
  if (type === "mixed") return [...account("socks5"), ...account("http")];
  if (type === "socks") return account("socks5");
  return type === "http" ? account("http") : [];
}

/** A list of maps, or a map of names to passwords. */
function usersOf(users: unknown): readonly (LinkNode & { readonly user: string | null })[] {
  if (Array.isArray(users))
    return users.map((item: unknown) => {
      const entry = mapOf(item) ?? {};
      return { ...entry, user: textOf(entry["username"]) ?? null };
    });
  return Object.entries(mapOf(users) ?? {}).map(([user, password]) => ({ user, password }));
}

/** Users of a 2022 method stand behind the server's key. */
function shadowsocksCredentials({ cipher, password, users }: LinkNode): readonly Credentials[] {
  const node = { type: "ss", cipher };
  if (!Array.isArray(users) || users.length === 0) return [{ user: null, ...node, password }];
  return users.map((item: unknown) => {
    const entry = mapOf(item) ?? {};
    const own = String(entry["credential"]);
    const is2022 = String(cipher).startsWith("2022-");
    return {
      user: textOf(entry["id"]) ?? null,
      ...node,
      password: is2022 ? `${String(password)}:${own}` : own,
    };
  });
}

/** Called `servername` by those that took the name from V2Ray, `sni` by the others. */
const SERVERNAME_TYPES: ReadonlySet<string> = new Set(["vless", "vmess"]);

function security(type: string, fields: LinkNode, { serverName }: ListenerContext): LinkNode {
  const key = SERVERNAME_TYPES.has(type) ? "servername" : "sni";
  const reality = mapOf(fields["reality-config"]);
  if (reality !== null) {
    const [name, shortId] = [first(reality["server-names"]), first(reality["short-id"])];
    const options = { "public-key": publicKeyOf(String(reality["private-key"])), "short-id": shortId ?? "" };
    return { tls: true, [key]: name, "client-fingerprint": "chrome", "reality-opts": options };
  }
  if (textOf(fields["certificate"]) === undefined) return {};
  return { tls: true, ...(serverName === null ? {} : { [key]: serverName }) };
}

function transport(fields: LinkNode): LinkNode {
  const path = textOf(fields["ws-path"]);
  if (path !== undefined && path !== "") return { network: "ws", "ws-opts": { path } };
  const service = textOf(fields["grpc-service-name"]);
  return service === undefined || service === ""
    ? {}
    : { network: "grpc", "grpc-opts": { "grpc-service-name": service } };
}

function first(value: unknown): string | undefined {
  return textOf(Array.isArray(value) ? value[0] : value);
}

/** PKCS #8 of an X25519 key (RFC 8410 §7): this head, then the 32 bytes. */
const X25519_HEAD = Buffer.from("302e020100300506032b656e04220420", "hex");

function publicKeyOf(privateKey: string): string {
  const key = createPrivateKey({
    key: Buffer.concat([X25519_HEAD, Buffer.from(privateKey, "base64url")]),
    format: "der",
    type: "pkcs8",
  });
  return createPublicKey(key).export({ format: "jwk" }).x as string;
}
