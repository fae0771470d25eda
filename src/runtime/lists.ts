/** Everything that a runtime knows from lists beside its configuration: providers of rules and nodes, and databases. */
import type { Config } from "#config/config.ts";
import type { RuleScope } from "#core/rule.ts";
import type { Health } from "#core/group.ts";
import type { Trust } from "#core/trust.ts";
import type { CountryOf } from "#dns/strategy.ts";
import { Geodata } from "#geodata/geodata.ts";
import type { Host } from "#host/host.ts";
import { compileLinear } from "#router/linear-pattern.ts";
import { openFetch } from "./downloads.ts";
import type { CoreDialers } from "./core-dialers.ts";
import { GeoUpdater } from "./geo-update.ts";
import type { Outbounds } from "./outbounds.ts";
import { ProxyProviders } from "./proxy-providers.ts";
import { RuleProviders } from "./rule-providers.ts";
import { openScope } from "./scope.ts";
import { wantedByNames, wantedGeodata } from "./wanted-geodata.ts";

export interface RuleDataEnv {
  readonly host: Host;
  readonly health: Health;
  readonly coreDialers: CoreDialers;
  readonly trust: Trust;
  /** Called when a rule provider has new contents; also while lists are loaded. */
  readonly onRuleList: () => void;
}

function openGeodata(
  { geodata: { geodataMode, geoxUrl } }: Config,
  previous: Geodata | null,
  { home, log, slices }: Host,
): Geodata {
  return new Geodata({ home, geodataMode, urls: geoxUrl, compile: compileLinear, slices, log }, previous);
}

export class RuleData implements AsyncDisposable {
  readonly ruleProviders: RuleProviders;
  readonly proxyProviders: ProxyProviders;
  readonly scope: RuleScope;
  /** Looks up the country of addresses in DNS answers; null: not configured. */
  readonly countryOf: CountryOf | null;
  readonly geoUpdater: GeoUpdater;
  readonly #geodata: Geodata;

  private constructor(config: Config, geodata: Geodata, given: RuleDataEnv) {
    const { host, health, coreDialers, trust, onRuleList } = given;
    const { log } = host;
    const { geodata: options, dns } = config;
    const fetch = openFetch(config, coreDialers, trust, () => host.memoryRelease.soon());
    this.#geodata = geodata;
    this.ruleProviders = new RuleProviders(config, host, fetch, {
      scope: () => this.scope,
      prepare: (wanted) => geodata.prepare(wanted),
      onChange: onRuleList,
    });
    this.proxyProviders = new ProxyProviders(config, host, health, fetch);
    this.scope = openScope(this.ruleProviders.all, this.#geodata);
    this.geoUpdater = new GeoUpdater({
      geodata: this.#geodata,
      options,
      fetch,
      log,
      changeRouting: (apply) => host.changeRouting(apply),
    });
    const judges = dns.enable && dns.fallback.length > 0 && dns.fallbackFilter.geoip;
    this.countryOf = judges ? this.#geodata.countryOf(dns.fallbackFilter.geoipCode) : null;
  }

  /** Reads the files on disk and downloads nothing. Lists that are missing or broken are logged and match nothing. */
  static async open(config: Config, previous: RuleData | null, env: RuleDataEnv): Promise<RuleData> {
    const geodata = openGeodata(config, previous === null ? null : previous.#geodata, env.host);
    // At the start there is nothing yet that reading them when they are asked for could hold up.
    if (previous !== null) await geodata.prepare(await env.host.slices.run(wantedGeodata(config)));
    const lists = new RuleData(config, geodata, env);
    // Now, not with the first question: then a file that is missing is fetched at the start.
    for (const { kind, key } of await env.host.slices.run(wantedByNames(config)))
      if (kind === "geosite") geodata.geosite(key);
      else geodata.geoip(key);
    await lists.ruleProviders.load(previous?.ruleProviders ?? null);
    return lists;
  }

  /** Nodes need the outbounds that exist by now; the groups use them at their next look. */
  async loadNodes(previous: RuleData | null, { open }: Outbounds): Promise<void> {
    await this.proxyProviders.load(previous?.proxyProviders ?? null, open);
  }

  /** From here on the lists keep themselves fresh. */
  activate(): void {
    this.ruleProviders.activate();
    this.proxyProviders.activate();
    this.geoUpdater.activate();
  }

  /** Resolves once every list that is fetched for the first time has come or failed. Only behind `activate`. */
  async firstLoads(): Promise<void> {
    const providers = [...this.ruleProviders.all.values(), ...this.proxyProviders.all.values()];
    await Promise.all(providers.map(({ resource }) => resource.firstLoad()));
  }

  /** Ends refreshing; what is loaded stays in use. */
  async quiet(): Promise<void> {
    await Promise.all([
      this.ruleProviders[Symbol.asyncDispose](),
      this.proxyProviders.quiet(),
      this.geoUpdater[Symbol.asyncDispose](),
    ]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.quiet();
    await this.proxyProviders[Symbol.asyncDispose]();
  }
}
