/** Lists of nodes and rules: how old they are, and what subscriptions say of themselves. */
import type { Control } from "#core/control.ts";
import { gauges, type MetricRegistry, type Sample } from "./read.ts";

export function providerMetrics(registry: MetricRegistry, { proxyProviders, ruleProviders }: Control): void {
  gauges(registry, {
    name: "weir_provider_updated_timestamp_seconds",
    help: "When the contents of a provider were last fetched or read",
    labels: ["provider", "kind"],
    *read(): Generator<Sample<"provider" | "kind">> {
      for (const [kind, list] of [
        ["proxy", proxyProviders.list()] as const,
        ["rule", ruleProviders.list()] as const,
      ])
        for (const { name, updatedAtMs } of list)
          if (updatedAtMs !== null) yield [{ provider: name, kind }, updatedAtMs / 1000];
    },
  });
  gauges(registry, {
    name: "weir_rule_provider_rules",
    help: "Entries of a list of rules",
    labels: ["provider"],
    read: () => ruleProviders.list().map(({ name, ruleCount }) => [{ provider: name }, ruleCount]),
  });
  gauges(registry, {
    name: "weir_subscription_left_bytes",
    help: "Bytes that a subscription says are left",
    labels: ["provider"],
    *read(): Generator<Sample<"provider">> {
      for (const { name, subscription } of proxyProviders.list())
        if (subscription !== null && subscription.totalBytes > 0)
          yield [
            { provider: name },
            subscription.totalBytes - subscription.uploadBytes - subscription.downloadBytes,
          ];
    },
  });
  gauges(registry, {
    name: "weir_subscription_expires_timestamp_seconds",
    help: "When a subscription says that it ends",
    labels: ["provider"],
    *read(): Generator<Sample<"provider">> {
      for (const { name, subscription } of proxyProviders.list())
        if (subscription !== null && subscription.expiresAtUnixSeconds > 0)
          yield [{ provider: name }, subscription.expiresAtUnixSeconds];
    },
  });
}
