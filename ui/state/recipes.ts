/** Listeners that the wizard can make: what it asks for, and the edits of the file that come of it. */
import type { Edit, Json, Setup } from "#ui/api/setup-types.ts";

export interface Recipe {
  readonly id: RecipeId;
  /** The names of protocols are the same in every language. */
  readonly label: string;
  readonly type: string;
  readonly network: "tcp" | "udp";
  readonly security: "reality" | "tls" | "none";
}

const IDS = ["reality", "vless", "anytls", "trojan", "hysteria2", "tuic", "shadowsocks", "mixed"] as const;
export type RecipeId = (typeof IDS)[number];

export const RECIPES: Readonly<Record<RecipeId, Recipe>> = {
  reality: { id: "reality", label: "VLESS + REALITY", type: "vless", network: "tcp", security: "reality" },
  vless: { id: "vless", label: "VLESS + TLS", type: "vless", network: "tcp", security: "tls" },
  anytls: { id: "anytls", label: "AnyTLS", type: "anytls", network: "tcp", security: "tls" },
  trojan: { id: "trojan", label: "Trojan", type: "trojan", network: "tcp", security: "tls" },
  hysteria2: { id: "hysteria2", label: "hysteria2", type: "hysteria2", network: "udp", security: "tls" },
  tuic: { id: "tuic", label: "TUIC 5", type: "tuic", network: "udp", security: "tls" },
  shadowsocks: {
    id: "shadowsocks",
    label: "Shadowsocks 2022",
    type: "shadowsocks",
    network: "tcp",
    security: "none",
  },
  mixed: { id: "mixed", label: "HTTP + SOCKS5 (mixed)", type: "mixed", network: "tcp", security: "none" },
};
export const RECIPE_IDS: readonly RecipeId[] = IDS;

export const VISION = "xtls-rprx-vision";
const SS_METHOD = "2022-blake3-aes-128-gcm";

/** A type and no interface: `useFields` wants an index. */
export type ListenerFields = {
  readonly recipe: RecipeId;
  readonly name: string;
  readonly port: string;
  readonly listen: string;
  readonly certificateFrom: "files" | "acme" | "self-signed";
  readonly certificate: string;
  readonly privateKey: string;
  /** Name in a certificate of its own, or one by ACME. */
  readonly serverName: string;
  /** Of the `acme` block, where there is none yet. */
  readonly email: string;
  readonly challenge: "http-01" | "tls-alpn-01";
  readonly agrees: boolean;
  readonly dest: string;
  readonly destName: string;
  /** Of a listener whose users stand in the file. */
  readonly userName: string;
  readonly publicUrl: string;
};

/** What the program made for it. */
export interface Made {
  readonly reality?: Readonly<Record<string, string>>;
  readonly certificate?: { readonly certificate: string; readonly private_key: string };
  /** A password or a key. */
  readonly credential?: string;
  /** For an `svc` block that is not there yet. */
  readonly secret?: string;
}

/** Its users are managed while it runs. */
export const isManaged = ({ managed_types: types }: Setup, recipe: Recipe): boolean =>
  types.includes(recipe.type);

/** The item for `listeners`. */
export function listenerOf(fields: ListenerFields, made: Made): Json {
  const { type, security } = RECIPES[fields.recipe];
  return {
    name: fields.name.trim(),
    type,
    listen: fields.listen,
    port: Number(fields.port),
    ...usersOf(fields, made),
    ...(security === "reality" ? realityOf(fields, made) : {}),
    ...(security === "tls" ? certificateOf(fields, made) : {}),
  };
}

function usersOf({ recipe, userName }: ListenerFields, { credential = "" }: Made): Record<string, Json> {
  if (recipe === "shadowsocks") return { cipher: SS_METHOD, password: credential };
  const user = { username: userName.trim(), password: credential };
  if (recipe === "trojan" || recipe === "mixed") return { users: [user] };
  return { users: RECIPES[recipe].type === "vless" ? [] : {} };
}

function realityOf({ dest, destName }: ListenerFields, { reality = {} }: Made): Record<string, Json> {
  return {
    "reality-config": {
      dest: dest.trim(),
      "server-names": [destName.trim()],
      "private-key": reality["private-key"] ?? "",
      "short-id": [reality["short-id"] ?? ""],
    },
  };
}

function certificateOf(fields: ListenerFields, { certificate }: Made): Record<string, Json> {
  if (certificate !== undefined)
    return { certificate: certificate.certificate, "private-key": certificate.private_key };
  if (fields.certificateFrom === "acme") return { acme: [fields.serverName.trim()] };
  return { certificate: fields.certificate.trim(), "private-key": fields.privateKey.trim() };
}

/** The new listener, and what the file needs besides for its users. */
export function listenerEdits(setup: Setup, fields: ListenerFields, made: Made): readonly Edit[] {
  const recipe = RECIPES[fields.recipe];
  return [
    { op: "add", path: ["listeners"], value: listenerOf(fields, made) },
    ...(recipe.security === "tls" && fields.certificateFrom === "acme" ? acmeEdits(setup, fields) : []),
    ...(isManaged(setup, recipe) ? svcEdits(setup, fields, made) : []),
  ];
}

/** Who has not agreed is told by the program, which checks every change. */
function acmeEdits({ acme }: Setup, { email, challenge, agrees }: ListenerFields): readonly Edit[] {
  if (acme) return [];
  const address = email.trim();
  const value = { ...(address === "" ? {} : { email: address }), "agree-tos": agrees, challenge };
  return [{ op: "set", path: ["acme"], value }];
}

function svcEdits({ svc }: Setup, fields: ListenerFields, { secret = "" }: Made): readonly Edit[] {
  const [name, url] = [fields.name.trim(), fields.publicUrl.trim()];
  if (svc === null) {
    const value = { secret, "public-base-url": url, "managed-listeners": [name] };
    return [{ op: "set", path: ["svc"], value }];
  }
  const managed: Edit = { op: "add", path: ["svc", "managed-listeners"], value: name };
  const isNew = url !== svc.public_base_url && url !== "";
  return isNew ? [managed, { op: "set", path: ["svc", "public-base-url"], value: url }] : [managed];
}

/** Without the listener; its users stay in the state file. */
export function removalOfListener({ svc }: Setup, name: string): readonly Edit[] {
  const isManaged = svc?.managed.includes(name) === true;
  return [
    ...(isManaged ? [{ op: "remove", path: ["svc", "managed-listeners", name] } as const] : []),
    { op: "remove", path: ["listeners", name] },
  ];
}

/** Without the node, in its groups too. */
export function removalOfNode({ groups }: Setup, name: string): readonly Edit[] {
  return [
    ...groups
      .filter(({ members }) => members.includes(name))
      .map(({ name: group }): Edit => ({ op: "remove", path: ["proxy-groups", group, "proxies", name] })),
    { op: "remove", path: ["proxies", name] },
  ];
}

/** New nodes, and their names in groups. */
export function nodeEdits(
  nodes: readonly { readonly name: string }[],
  groups: readonly string[],
): readonly Edit[] {
  return [
    ...nodes.map((node): Edit => ({ op: "add", path: ["proxies"], value: node })),
    ...groups.flatMap((group) =>
      nodes.map(({ name }): Edit => ({ op: "add", path: ["proxy-groups", group, "proxies"], value: name })),
    ),
  ];
}
