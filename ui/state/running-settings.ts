/** Settings that change while the program runs, what tells that they did, and where they stand in the file. */
import type { Configs } from "#ui/api/types.ts";
import type { Edit, Json } from "#ui/api/setup-types.ts";
import { WordedError } from "#ui/words/words.ts";

/** Where each stands in the file. */
const PLACES = {
  mode: ["mode"],
  "log-level": ["log-level"],
  "allow-lan": ["allow-lan"],
  "bind-address": ["bind-address"],
  "interface-name": ["interface-name"],
  "find-process-mode": ["find-process-mode"],
  ipv6: ["ipv6"],
  "tcp-concurrent": ["tcp-concurrent"],
  "unified-delay": ["unified-delay"],
  sniffing: ["sniffer", "enable"],
  "mixed-port": ["mixed-port"],
  port: ["port"],
  "socks-port": ["socks-port"],
  "redir-port": ["redir-port"],
  "tproxy-port": ["tproxy-port"],
  tun: ["tun", "enable"],
} as const satisfies Partial<Record<keyof Configs, readonly string[]>>;

export type Setting = keyof typeof PLACES;
/** What was changed and is not in the file. */
export type Unkept = ReadonlyMap<Setting, Json>;

export function fragmentOf(setting: Setting, value: Json): object {
  return setting === "tun" ? { tun: { enable: value } } : { [setting]: value };
}

export function valueOf(configs: Configs, setting: Setting): Json {
  return setting === "tun" ? configs.tun.enable : configs[setting];
}

export function editsOf(unkept: Unkept): readonly Edit[] {
  return [...unkept].map(([setting, value]) => ({ op: "set", path: PLACES[setting], value }));
}

/** Why the program runs by another value than it was asked for. */
export function refusalOf(setting: Setting): WordedError {
  if (setting === "sniffing") return new WordedError((t) => t("running.noSniffer"));
  if (setting.endsWith("port")) return new WordedError((t) => t("running.noPort"));
  return new WordedError((t) => t("running.notTaken"));
}
