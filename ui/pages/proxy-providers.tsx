import { useState } from "preact/hooks";
import type { ProxyProvider } from "#ui/api/types.ts";
import { Button, Panel } from "#ui/parts/small.tsx";
import { useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import { realProviders } from "#ui/state/nodes.ts";

interface Props {
  readonly providers: readonly ProxyProvider[];
  readonly reload: () => Promise<void>;
}

/** Lists of nodes from elsewhere; nothing where there are none. */
export function ProxyProvidersPanel({ providers, reload }: Props) {
  const { t } = useWords();
  const real = realProviders(providers);
  if (real.length === 0) return null;
  return (
    <Panel title={t("groups.providers")}>
      <ul class="lines">
        {real.map((provider) => (
          <ProviderLine key={provider.name} provider={provider} reload={reload} />
        ))}
      </ul>
    </Panel>
  );
}

function ProviderLine({
  provider,
  reload,
}: {
  readonly provider: ProxyProvider;
  readonly reload: () => Promise<void>;
}) {
  const { link } = useEnvironment();
  const act = useAction();
  const words = useWords();
  const { t } = words;
  const [busy, setBusy] = useState(false);
  const { name, vehicleType, proxies, updatedAt, subscriptionInfo: quota } = provider;
  const path = `providers/proxies/${encodeURIComponent(name)}`;
  const run = async (work: () => Promise<void>, failed: string): Promise<void> => {
    setBusy(true);
    await act(work, failed);
    await reload();
    setBusy(false);
  };
  const facts = [
    vehicleType,
    t("groups.nodes", { count: proxies.length }),
    t("common.updatedAgo", { ago: words.ago(updatedAt, Date.now()) }),
    ...(quota === undefined
      ? []
      : [
          t("groups.used", {
            used: words.bytes(quota.Upload + quota.Download),
            total: words.bytes(quota.Total),
          }),
        ]),
  ];
  return (
    <li class="line">
      <span class="line-main">
        <span class="text">{name}</span>
        <small>{facts.join(", ")}</small>
      </span>
      <Button
        label={t("common.test")}
        busy={busy}
        onPress={() => run(() => link.get(`${path}/healthcheck`), t("groups.notTested", { name }))}
      />
      {vehicleType !== "Inline" && (
        <Button
          label={t("common.update")}
          busy={busy}
          onPress={() => run(() => link.send("PUT", path), t("common.notUpdated", { name }))}
        />
      )}
    </li>
  );
}
