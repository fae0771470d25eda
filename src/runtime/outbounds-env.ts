/** What the outbounds of a runtime are opened with. */
import type { ProxyConfig } from "#config/config.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Choices, Health } from "#core/group.ts";
import type { HostMemory } from "#core/host-memory.ts";
import type { Log } from "#core/log.ts";
import type { DnsAnswers, LookUpAt, Outbound } from "#core/outbound.ts";
import type { ProxyProvider } from "#core/provider.ts";
import type { Resolver } from "#core/resolver.ts";
import type { Slices } from "#core/slices.ts";
import type { TlsProvider } from "#core/tls.ts";
import type { Trust } from "#core/trust.ts";
import type { Egress } from "#net/dial/egress.ts";
import type { SelfDials } from "#net/dial/self-dials.ts";

export interface OutboundsEnv {
  readonly health: Health;
  /** Names that rules need. */
  readonly resolver: Resolver;
  /** Names that DIRECT dials, and everything without a server of its own. */
  readonly directResolver: Resolver;
  /** Names of proxy servers. */
  readonly proxyResolver: Resolver;
  /** For nodes with servers of their own. */
  readonly lookUpAt: LookUpAt;
  /** Of the engine in force; null: the `dns` section is off. */
  readonly dns: DnsAnswers | null;
  readonly choices: Choices;
  readonly providers: ReadonlyMap<string, ProxyProvider>;
  /** As a provider has it; null: it is none of a provider. */
  readonly providedConfig: (node: Outbound) => ProxyConfig | null;
  readonly files: SafeFiles;
  readonly egress: Egress;
  readonly selfDials: SelfDials;
  readonly log: Log;
  readonly nowMs: () => number;
  readonly trust: Trust;
  readonly tls: TlsProvider;
  readonly slices: Slices;
  /** What nodes keep beyond a generation. */
  readonly memory: HostMemory;
}
