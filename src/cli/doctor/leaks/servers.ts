/** Which servers the leak test asks: those that were named, and those that the configuration has. */
import type { Config } from "#config/config.ts";
import type { Ip } from "#core/session.ts";
import { parseIp } from "#net/address/ip.ts";
import { UsageError, type FlagTable, type ParsedFlags } from "#cli/flags.ts";

export const LEAK_FLAGS = {
  leaks: { kind: "switch", help: "the leak test alone: what passes the running weir by, or shows this line" },
  stun: { kind: "text", value: "SERVERS", help: "with -leaks: STUN servers, host:port, commas between" },
  page: {
    kind: "text",
    value: "URLS",
    help: "with -leaks: pages that show who asks; absent: the url of each group",
  },
  dns: { kind: "text", value: "SERVERS", help: "with -leaks: addresses of DNS servers beside the system's" },
  own: {
    kind: "text",
    value: "ADDRESSES",
    help: "with -leaks: addresses beside the devices' that none may see",
  },
} as const satisfies FlagTable;

const STUN_PORT = 3478;
/** Servers of a kind; a probe of each is under way at once. */
const MOST_SERVERS = 8;

export interface NamedServer {
  readonly host: string;
  readonly port: number;
}

export interface LeakServers {
  readonly stun: readonly NamedServer[];
  readonly pages: readonly URL[];
  readonly dns: readonly Ip[];
  readonly own: readonly Ip[];
}

/** Throws `UsageError`. */
export function leakServers(flags: ParsedFlags, config: Config): LeakServers {
  const words = (flag: keyof typeof LEAK_FLAGS): readonly string[] => {
    const given = (flags.text(flag) ?? "").split(",").map((word) => word.trim());
    const filled = given.filter((word) => word !== "");
    if (filled.length > MOST_SERVERS) throw new UsageError(`doctor: -${flag} takes at most ${MOST_SERVERS}`);
    return filled;
  };
  const addresses = (flag: "dns" | "own"): readonly Ip[] =>
    words(flag).map((word) => {
      const ip = parseIp(word);
      if (ip === null) throw new UsageError(`doctor: -${flag} takes addresses, not ${word}`);
      return ip;
    });
  const named = words("page");
  const configured = [...new Set(config.groups.flatMap(({ settings }) => settings?.url || []))];
  return {
    stun: words("stun").map(stunServer),
    pages: (named.length > 0 ? named : configured.slice(0, MOST_SERVERS)).map(pageUrl),
    dns: addresses("dns"),
    own: addresses("own"),
  };
}

function stunServer(word: string): NamedServer {
  const bare = parseIp(word);
  if (bare !== null) return { host: bare, port: STUN_PORT };
  const [, host, port = String(STUN_PORT)] =
    /^(?:stuns?:)?(\[[0-9a-f:.]+\]|[^:\s/]+)(?::(\d{1,5}))?$/i.exec(word) ?? [];
  if (host === undefined || !(Number(port) > 0 && Number(port) < 65_536))
    throw new UsageError(`doctor: -stun takes host:port, not ${word}`);
  return { host: host.replace(/^\[(.*)\]$/, "$1"), port: Number(port) };
}

function pageUrl(word: string): URL {
  const url = URL.parse(word);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new UsageError(`doctor: -page takes http or https URLs, not ${word}`);
  return url;
}
