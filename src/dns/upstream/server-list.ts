/** An upstream whose servers come from the system and may change: plain UDP to each, all at once. */
import type { NameserverOptions } from "#core/dns-options.ts";
import type { Ip } from "#core/session.ts";
import { parseNameserver } from "#net/dial/nameserver.ts";
import { raceUpstreams } from "#dns/race.ts";
import type { Upstream } from "./upstream.ts";

/** More servers than this are not asked: resolvers of operating systems use three. */
const MAX_SERVERS = 8;

export interface ServerListEnv {
  readonly text: string;
  /** Never empty; asked before every query, so it must remember. */
  readonly current: (signal: AbortSignal) => Promise<readonly Ip[]>;
  /** What it remembers is of a network that is gone: it is to look again. */
  readonly forget: () => void;
  readonly openServer: (server: NameserverOptions) => Upstream;
  /** The interface that queries must leave by; null: the default way. */
  readonly exit: string | null;
}

export function openServerList(env: ServerListEnv): Upstream {
  const open = new Map<Ip, Upstream>();
  const upstreamOf = (ip: Ip): Upstream => {
    const known = open.get(ip);
    if (known !== undefined) return known;
    const opened = env.openServer({ ...parseNameserver(ip, () => {}), exit: env.exit });
    open.set(ip, opened);
    return opened;
  };
  const closeAllBut = async (kept: readonly Ip[]): Promise<void> => {
    for (const [ip, upstream] of open) {
      if (kept.includes(ip)) continue;
      open.delete(ip);
      await upstream[Symbol.asyncDispose]();
    }
  };
  return {
    text: env.text,
    fixed: false,
    async exchange(query, signal) {
      const servers = (await env.current(signal)).slice(0, MAX_SERVERS);
      await closeAllBut(servers);
      return (await raceUpstreams(servers.map(upstreamOf), query, signal)).packet.bytes;
    },
    reset() {
      env.forget();
      open.forEach((upstream) => upstream.reset());
    },
    [Symbol.asyncDispose]: () => closeAllBut([]),
  };
}
