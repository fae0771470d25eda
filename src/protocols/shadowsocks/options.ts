import * as z from "zod";
import { ConfigError } from "#core/errors.ts";
import { flag, int, mapOf, name, noneOf, scalar, secret, text, unsetAs, Unsupported } from "#core/fields.ts";
import { serverFields, unsupported } from "#core/node-fields.ts";
import type { User } from "#core/inbound.ts";
import { suggestion } from "#lib/nearest-word.ts";
import { muxClientFields, muxServerFields } from "#transport/mux/fields.ts";
import { headerMap, tlsClientFields } from "#transport/tls/fields.ts";
import { findMethod, METHOD_NAMES, preSharedKeys, methodOf } from "./methods.ts";
import { serverKeys } from "./server-keys.ts";

const cipher = () =>
  scalar({ type: "string", enum: [...METHOD_NAMES] }, (source, raw) => {
    if (FOREIGN_CIPHERS.has(source.toLowerCase())) return new Unsupported(`${source} is not in this build`);
    return findMethod(source)?.name ?? noneOf(METHOD_NAMES, source, raw);
  });

/** Ciphers that other cores still speak, most of them without authentication. */
const FOREIGN_CIPHERS: ReadonlySet<string> = new Set(
  [
    [128, 192, 256].flatMap((bits) => ["ofb", "cfb8", "ccm", "gcm-siv"].map((mode) => `aes-${bits}-${mode}`)),
    [128, 192, 256].flatMap((bits) => [`camellia-${bits}-cfb`, `lea-${bits}-gcm`]),
    "rc4 rc4-md5-6 salsa20".split(" "),
    "bf-cfb cast5-cfb des-cfb idea-cfb rc2-cfb seed-cfb".split(" "),
    "chacha8-ietf-poly1305 xchacha8-ietf-poly1305 rabbit128-poly1305 aegis-128l aegis-256".split(" "),
    "aez-384 deoxys-ii-256-128 ascon128 ascon128a".split(" "),
  ].flat(),
);

/** A listener with an unknown cipher stays closed; the rest of the configuration is in force. */
const listenerCipher = () =>
  scalar(
    { type: "string", enum: [...METHOD_NAMES] },
    (source, raw) => findMethod(source)?.name ?? new Unsupported(noneOf(METHOD_NAMES, source, raw).message),
  );

const PLUGINS = ["obfs", "v2ray-plugin", "gost-plugin"] as const;
type PluginName = (typeof PLUGINS)[number];

/** Without its plugin a node's traffic would show what it is: another one costs the node. */
const plugin = () =>
  scalar({ type: "string", enum: ["", ...PLUGINS] }, (source, raw): PluginName | undefined | Unsupported => {
    if (source === "") return undefined;
    const found = PLUGINS.find((word) => word === source);
    return found ?? new Unsupported(noneOf(PLUGINS, source, raw).message);
  });

const pluginOptions = z.looseObject({
  mode: text().optional(),
  host: text().default("bing.com"),
  path: text().default("/"),
  headers: headerMap().default({}),
  tls: flag().default(false),
  mux: flag().default(true),
  "v2ray-http-upgrade": flag().default(false),
  "v2ray-http-upgrade-fast-open": flag().default(false),
  ...tlsClientFields,
});
export type PluginOptions = z.output<typeof pluginOptions>;

export const outboundSchema = z
  .object({
    ...serverFields,
    cipher: cipher(),
    password: secret(),
    udp: flag().default(false),
    "udp-over-tcp": flag().default(false),
    "udp-over-tcp-version": unsetAs(int(1, 2), 1).default(1),
    plugin: plugin().optional(),
    obfs: unsupported("write plugin: obfs with plugin-opts"),
    "plugin-opts": pluginOptions.optional(),
    ...muxClientFields,
  })
  .superRefine(({ cipher: method, password, plugin: kind, "plugin-opts": options }, context) => {
    const fault = faultOf(() => checkPassword(method, password));
    if (fault !== null) context.addIssue({ code: "custom", message: fault, path: ["password"] });
    const modes = kind === "obfs" ? ["http", "tls"] : kind === undefined ? null : ["websocket"];
    const mode = options?.mode ?? "";
    if (modes !== null && !modes.includes(mode))
      context.addIssue({
        code: "custom",
        message: `${kind} needs mode ${modes.join(" or ")}${suggestion(mode, modes)}`,
        path: ["plugin-opts", "mode"],
      });
  });
export type OutboundOptions = z.output<typeof outboundSchema>;

function checkPassword(methodName: string, password: string): void {
  const method = methodOf(methodName);
  if (method.edition === "2022") preSharedKeys(method, password);
}

/** A map of names to passwords, or a list of {username, password}. */
const userList = () =>
  z
    .union([
      mapOf(secret()),
      z.array(z.object({ username: name(), password: secret() }), {
        error: "expected a map of name: password",
      }),
    ])
    .transform((value): User[] =>
      Array.isArray(value)
        ? value.map(({ username, password }) => ({ id: username, credential: password, flow: null }))
        : Object.entries(value).map(([id, credential]) => ({ id, credential, flow: null })),
    );

export const inboundSchema = z
  .object({
    cipher: listenerCipher(),
    password: secret().default(""),
    udp: flag().default(true),
    users: userList().optional(),
    "kcp-tun": unsupported("kcptun is not in this build"),
    "simple-obfs": unsupported("simple-obfs is not in this build's listeners"),
    ...muxServerFields,
  })
  .superRefine(({ cipher: method, password, users }, context) => {
    const found = methodOf(method);
    if (password === "" && users === undefined && found.edition !== "plain")
      context.addIssue({ code: "custom", message: "is required", path: ["password"] });
    else {
      const fault = faultOf(() => serverKeys(found, password, users ?? null));
      if (fault !== null) context.addIssue({ code: "custom", message: fault, path: ["password"] });
    }
  });
export type InboundOptions = z.output<typeof inboundSchema>;

function faultOf(check: () => unknown): string | null {
  try {
    check();
    return null;
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
}
