/** Joins the parts into the one object that the Controller API reads and commands. */
import type { Control } from "#core/control.ts";
import { PROTOCOLS } from "#protocols/index.ts";
import { managedProtocols } from "#users/views.ts";
import { VERSION } from "#version.ts";
import { backupControl } from "./backup.ts";
import { connectionsControl } from "./connections.ts";
import { cachesControl, dnsControl } from "./dns.ts";
import { governanceControl } from "./governance.ts";
import { kernelDirectControl } from "./kernel-direct.ts";
import { proxiesControl, serverOf } from "./proxies.ts";
import { proxyProvidersControl } from "./proxy-providers.ts";
import { restoreControl } from "./restore.ts";
import { ruleProvidersControl } from "./rule-providers.ts";
import { rulesControl } from "./rules.ts";
import { storageControl } from "./storage.ts";
import { setupControl } from "./setup/index.ts";
import { upkeepControl } from "./upkeep.ts";
import type { ControlEnv } from "./control-env.ts";

export function openControl(env: ControlEnv): Control {
  const { host, health, configs, configFile, runtime, restart } = env;
  const names = () => runtime().names;
  const proxies = {
    health,
    outbounds: () => runtime().outbounds,
    providers: () => runtime().lists.proxyProviders,
    choosing: () => host.cache.demand(),
    chosen: () => host.invalidateRoutes(),
  };
  return {
    build: { version: VERSION, managedProtocols: managedProtocols(PROTOCOLS) },
    configs,
    configFile,
    setup: setupControl(env),
    backup: backupControl(env),
    restore: restoreControl(env),
    proxies: proxiesControl(proxies),
    proxyProviders: proxyProvidersControl(proxies),
    rules: rulesControl(() => runtime().router, names, {
      counted: () => host.relayPath.sync(),
      settled: () => host.relayPath.settleDecisions(),
      switched: () => host.invalidateRoutes(),
    }),
    ruleProviders: ruleProvidersControl(() => runtime().lists.ruleProviders),
    connections: connectionsControl(host.live, {
      providerOf: (outbound) => runtime().lists.proxyProviders.originOf(outbound)?.provider ?? "",
      serverOf: (outbound) => serverOf(outbound, proxies),
    }),
    logs: {
      watch: (level, on) => host.log.subscribe(level, on),
      recent: (level, count) => host.log.recent(level, count),
    },
    dns: dnsControl(names),
    caches: cachesControl(names),
    storage: storageControl(host.cache),
    upkeep: upkeepControl(restart, {
      updateGeo: () => runtime().lists.geoUpdater.update(),
      upgradeUi: () => env.upgradeUi(),
    }),
    updates: env.updates,
    governance: governanceControl(env),
    kernelDirect: kernelDirectControl(host, () => names().resolver),
    memoryBytes: () => process.memoryUsage.rss(),
  };
}
