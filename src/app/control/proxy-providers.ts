import type { ProxyProvidersControl, ProxyProviderView } from "#core/control.ts";
import { ApiError } from "#core/errors.ts";
import { compatibleProviders, statusText, testOne, viewOf, type ProxiesEnv } from "./proxies.ts";
import { updateOrSay, VEHICLES } from "./rule-providers.ts";

/** The configured providers of the runtime in force, then those that are made for groups. */
export function proxyProvidersControl(env: ProxiesEnv): ProxyProvidersControl {
  const compatible = compatibleProviders(env);
  const { providers } = env;
  const has = (name: string) => providers().all.has(name);
  const get = (name: string) => viewProvider(name, env) ?? compatible.get(name);
  const find = (provider: string, node: string) =>
    providers()
      .all.get(provider)
      ?.nodes()
      .find(({ name }) => name === node);
  return {
    get,
    node(provider, name) {
      if (!has(provider)) return compatible.node(provider, name);
      const found = find(provider, name);
      return found === undefined ? null : viewOf(found, env);
    },
    list: () => {
      const own = [...providers().all.keys()].map((name) => viewProvider(name, env));
      return [...own.filter((view) => view !== null), ...compatible.list().filter(({ name }) => !has(name))];
    },
    async update(name) {
      const provider = providers().all.get(name);
      if (provider === undefined) return compatible.update(name);
      await updateOrSay(() => provider.resource.update());
    },
    healthCheck: (name, signal) =>
      has(name) ? providers().healthCheck(name, signal) : compatible.healthCheck(name, signal),
    async test(name, node, test) {
      if (!has(name)) return compatible.test(name, node, test);
      const found = find(name, node);
      if (found === undefined) throw new ApiError(404, "Resource not found");
      return testOne(found, test, env.health);
    },
  };
}

function viewProvider(name: string, env: ProxiesEnv): ProxyProviderView | null {
  const providers = env.providers();
  const provider = providers.all.get(name);
  const config = providers.configs.get(name);
  if (provider === undefined || config === undefined) return null;
  return {
    name,
    vehicleType: VEHICLES[config.type],
    proxies: provider
      .nodes()
      .values()
      .map((node) => viewOf(node, env)),
    testUrl: provider.testUrl ?? "",
    expectedStatus: config.healthCheck === null ? "*" : statusText(config.healthCheck.expectedStatus),
    updatedAtMs: provider.resource.updatedAtMs,
    subscription: providers.subscriptionOf(name),
  };
}
