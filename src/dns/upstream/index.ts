/** Every transport by its scheme, and one upstream per distinct entry. */
import type { NameserverOptions } from "#core/dns-options.ts";
import { ConfigError } from "#core/errors.ts";
import type { Resolver } from "#core/resolver.ts";
import type { Ip } from "#core/session.ts";
import type { Trust } from "#core/trust.ts";
import { nameserverKey } from "#net/dial/nameserver.ts";
import { DEFAULT_TRUST } from "#net/dial/trust.ts";
import { openDhcpUpstream } from "./dhcp.ts";
import { openHttpsUpstream } from "./https.ts";
import { type DialClient, openKeptClient } from "./kept-client.ts";
import { withParameters } from "./parameters.ts";
import { QuestionSockets } from "./question-sockets.ts";
import { openRcodeUpstream } from "./rcode.ts";
import { openTcpUpstream, openTlsUpstream } from "./stream.ts";
import { openSystemUpstream } from "./system.ts";
import { openUdpUpstream } from "./udp.ts";
import type { Exit, Upstream, UpstreamEnv } from "./upstream.ts";

export interface UpstreamPoolEnv {
  /** Asked at every dial. An exit that is no proxy or group is an interface. Throws `DialError` where it is neither. */
  readonly exitFor: (server: Pick<NameserverOptions, "exit" | "followRules">) => Exit;
  readonly resolvConf: string | null;
  readonly ownAddresses: () => ReadonlySet<Ip>;
  readonly nowMs: () => number;
  /** Absent: the authorities of the runtime alone. */
  readonly trust?: Trust;
  /** See `UpstreamEnv`; absent: false. */
  readonly preferHttp3?: boolean;
  /** That questions over UDP may have open together. Absent: more than any system runs short of. */
  readonly mostSockets?: number;
}

type Opener = (server: NameserverOptions, env: UpstreamEnv, pool: UpstreamPool) => Upstream;

const unsupported: Opener = ({ text }) => {
  throw new ConfigError(`${text} cannot be asked here`);
};

const OPENERS: Readonly<Record<NameserverOptions["scheme"], Opener>> = {
  udp: (server, env) => openUdpUpstream(server, env, openTcpUpstream(server, env)),
  tcp: openTcpUpstream,
  tls: openTlsUpstream,
  https: openHttpsUpstream,
  http: openHttpsUpstream,
  rcode: openRcodeUpstream,
  system: (_, __, pool) => pool.openSystem(),
  dhcp: ({ host }, _, pool) => pool.openDhcp(host),
  quic: (server, env) => openDoq(server, env),
  tailscale: unsupported, // left out of its list before it comes here
};

/** Equal entries share one upstream and with it their connections. Disposing closes all. */
export class UpstreamPool implements AsyncDisposable {
  readonly #env: UpstreamPoolEnv;
  readonly #open = new Map<string, Upstream>();
  readonly #sockets: QuestionSockets;

  constructor(env: UpstreamPoolEnv) {
    this.#env = env;
    this.#sockets = new QuestionSockets(env.mostSockets);
  }

  /** `resolver`: for the names of servers. */
  open(server: NameserverOptions, resolver: Resolver): Upstream {
    const key = nameserverKey(server);
    const known = this.#open.get(key);
    if (known !== undefined) return known;
    const opened = withParameters(this.#openPlain(server, resolver), server);
    this.#open.set(key, opened);
    return opened;
  }

  openSystem(): Upstream {
    const { resolvConf, ownAddresses, nowMs } = this.#env;
    return openSystemUpstream({ resolvConf, ownAddresses, nowMs, openServer: this.#openLiteral });
  }

  openDhcp(name: string): Upstream {
    return openDhcpUpstream(name, { root: "/", nowMs: this.#env.nowMs, openServer: this.#openLiteral });
  }

  #openPlain(server: NameserverOptions, resolver: Resolver): Upstream {
    const { exitFor, trust = DEFAULT_TRUST, preferHttp3 = false } = this.#env;
    const exit = () => exitFor(server);
    const sockets = this.#sockets;
    return OPENERS[server.scheme](server, { exit, resolver, trust, preferHttp3, sockets }, this);
  }

  /** Of every upstream. */
  reset(): void {
    for (const upstream of this.#open.values()) upstream.reset();
  }

  readonly #openLiteral = (server: NameserverOptions): Upstream =>
    this.#openPlain(server, { lookup: () => Promise.reject(new Error("an address needs no resolver")) });

  async [Symbol.asyncDispose](): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(open.map((upstream) => upstream[Symbol.asyncDispose]()));
  }
}

function openDoq(server: NameserverOptions, env: UpstreamEnv): Upstream {
  let dial: Promise<DialClient> | null = null;
  return openKeptClient(server.text, async (life) => {
    dial ??= import("./quic.ts").then((all) => all.doqDial(server, env));
    return (await dial)(life);
  });
}
