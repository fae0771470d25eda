/** What `weir import` can read: from the words of the command line to a configuration and its users. */
import { readFileSync, statSync } from "node:fs";
import { ConfigError } from "#core/errors.ts";
import type { Protocol } from "#core/protocol.ts";
import { yamlText } from "#lib/yaml-text.ts";
import { assemble } from "#migration/assemble.ts";
import type { Imported, LeftOut } from "#migration/imported.ts";
import { parseObject, type Json } from "#migration/json.ts";
import { readMarzban } from "#migration/marzban.ts";
import { readShareLinks } from "#migration/share-links.ts";
import { readSingBox } from "#migration/sing-box.ts";
import { openForeign } from "#migration/sqlite.ts";
import { readThreeXUi } from "#migration/three-x-ui.ts";
import { readXray } from "#migration/xray.ts";
import { parseLink } from "#protocols/share-links/index.ts";
import { decodeBase64 } from "#protocols/shared/links/grammar.ts";
import { UsageError, type ParsedFlags } from "./flags.ts";

export interface ImportEnv {
  readonly protocols: readonly Protocol[];
  readonly report: LeftOut;
  readonly nowMs: number;
}

/** Files to be written. */
export interface Draft {
  /** Of `config.yaml`. */
  readonly text: string;
  /** Of `users.json`; null: there are no managed users. */
  readonly users: Json | null;
  /** Of `former-subscriptions.json`; null: there were no subscriptions. */
  readonly former: Json | null;
  readonly summary: string;
}

export const FORMER_FILE = "former-subscriptions.json";

type Source = (path: string, flags: ParsedFlags, env: ImportEnv) => Draft;

/** Of programs that keep what a configuration is made of. */
const assembled =
  (read: (path: string, flags: ParsedFlags, env: ImportEnv) => Imported): Source =>
  (path, flags, env) => {
    const publicBaseUrl = flags.text("public-base-url") ?? "";
    const options = { ...env, publicBaseUrl, store: "users.db", formerFile: FORMER_FILE };
    const made = assemble(read(path, flags, env), options);
    const { listeners, nodes, managedUsers, fixedUsers } = made;
    return {
      text: yamlText(made.configuration, { lineWidth: 0 }),
      users: made.document,
      former: made.former,
      summary: `${listeners} listeners, ${managedUsers} managed users, ${fixedUsers} users in the configuration, ${nodes} nodes`,
    };
  };

const LINKS = { parse: parseLink, decode: decodeBase64 };

export const SOURCES: Readonly<Record<string, Source>> = {
  "3x-ui": assembled((path, _flags, env) => {
    using database = openForeign(path);
    return readThreeXUi(database, env);
  }),
  marzban: assembled((path, flags, env) => {
    const file = flags.text("xray");
    if (file === null)
      throw new UsageError(`import marzban: the inbounds are missing: -xray xray_config.json`);
    const xray = parseObject(readText(file), file);
    using database = openForeign(path);
    return readMarzban(database, { ...env, xray, subPath: flags.text("sub-path") ?? "sub" });
  }),
  xray: assembled((path, _flags, env) => readXray(parseObject(readText(path), path), env)),
  "sing-box": assembled((path, _flags, env) => readSingBox(parseObject(readText(path), path), env)),
  "share-links": assembled((path, _flags, env) =>
    readShareLinks(readText(path), path, { ...env, links: LINKS }),
  ),
  // Its files are ours already: the text stays as it is, comments too.
  mihomo: (path) => ({ text: readText(path), users: null, former: null, summary: "the profile as it is" }),
};

const MOST_TEXT_BYTES = 64 * 1024 * 1024;

function readText(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() !== true) throw new ConfigError(`${path}: there is no such file`);
  if (stats.size > MOST_TEXT_BYTES) throw new ConfigError(`${path}: the file is larger than 64 MiB`);
  return readFileSync(path, "utf8");
}
