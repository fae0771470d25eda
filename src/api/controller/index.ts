/** THE list of resources of the Controller API. */
import { type AppEnv, isInClear } from "#api/app-env.ts";
import { dohRoutes } from "#api/doh.ts";
import { openApiRoutes } from "#api/openapi.ts";
import type { Route } from "#api/route.ts";
import { uiRoutes } from "#api/ui.ts";
import { backupRoutes } from "./backup.ts";
import { cacheRoutes } from "./caches.ts";
import { capabilityRoutes } from "./capabilities.ts";
import { configFileRoutes } from "./config-file.ts";
import { configRoutes } from "./configs.ts";
import { connectionRoutes } from "./connections.ts";
import { dnsRoutes } from "./dns.ts";
import { groupRoutes } from "./groups.ts";
import { identityRoutes } from "./identity.ts";
import { kernelDirectRoutes } from "./kernel-direct.ts";
import { logRoutes } from "./logs.ts";
import { proxyProviderRoutes } from "./proxy-providers.ts";
import { proxyRoutes } from "./proxies.ts";
import { restoreRoutes } from "./restore.ts";
import { ruleProviderRoutes } from "./rule-providers.ts";
import { ruleRoutes } from "./rules.ts";
import { sessionRoutes } from "./sessions.ts";
import { setupRoutes } from "./setup.ts";
import { storageRoutes } from "./storage.ts";
import { trafficControlRoutes } from "./traffic-control.ts";
import { trafficRoutes } from "./traffic.ts";
import { updateRoutes } from "./updates.ts";
import { upkeepRoutes } from "./upkeep.ts";

export async function controllerRoutes(env: AppEnv): Promise<readonly Route[]> {
  const { control, options, subscribers, transport } = env;
  const resources = [
    ...identityRoutes(control),
    ...trafficRoutes(control, subscribers),
    ...logRoutes(control.logs, subscribers),
    ...connectionRoutes(control, subscribers),
    ...configRoutes(control),
    ...configFileRoutes(control.configFile),
    ...setupRoutes(control.setup),
    ...signInRoutes(env),
    ...backupRoutes(control.backup),
    ...restoreRoutes(control.restore),
    ...proxyRoutes(control.proxies),
    ...groupRoutes(control.proxies),
    ...proxyProviderRoutes(control.proxyProviders),
    ...ruleRoutes(control.rules),
    ...ruleProviderRoutes(control.ruleProviders),
    ...dnsRoutes(control.dns),
    ...cacheRoutes(control.caches),
    ...storageRoutes(control.storage),
    ...upkeepRoutes(control.upkeep),
    ...updateRoutes(control.updates),
    ...capabilityRoutes(control),
    ...kernelDirectRoutes(control.kernelDirect),
    ...trafficControlRoutes(control.governance),
    ...env.metrics.routes(),
    ...uiRoutes(options.uiFolder, options.uiIsOurs === true),
    ...((await options.mounts?.(transport, subscribers)) ?? []),
  ];
  const taken = new Set(["/openapi.json", ...resources.map(({ path }) => path)]);
  const doh = dohRoutes(options.dohPath, control.dns).filter(({ path }) => !taken.has(path)); // ours come first
  const all = [...resources, ...doh];
  return [...all, ...openApiRoutes(all, control.build.version)];
}

/** None where there are no sessions. */
function signInRoutes({ options, transport }: AppEnv): readonly Route[] {
  const { secret, access, svcSecret = () => null } = options;
  if (access === undefined) return [];
  return sessionRoutes({ secret, access, svcSecret: isInClear(transport) ? () => null : svcSecret });
}
