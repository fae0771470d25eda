import { useState } from "preact/hooks";
import type { ProxyProvider } from "#ui/api/types.ts";
import { agoText, bytesText, counted } from "#ui/format.ts";
import { Button, Panel } from "#ui/parts/small.tsx";
import { useAction, useEnvironment } from "#ui/state/context.ts";
import { realProviders } from "#ui/state/nodes.ts";

interface Props {
  readonly providers: readonly ProxyProvider[];
  readonly reload: () => Promise<void>;
}

/** Lists of nodes from elsewhere; nothing where there are none. */
export function ProxyProvidersPanel({ providers, reload }: Props) {
  const real = realProviders(providers);
  if (real.length === 0) return null;
  return (
    <Panel title="Providers of nodes">
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
  const [busy, setBusy] = useState(false);
  const { name, vehicleType, proxies, updatedAt, subscriptionInfo: quota } = provider;
  const path = `providers/proxies/${encodeURIComponent(name)}`;
  const run = async (work: () => Promise<void>, failed: string): Promise<void> => {
    setBusy(true);
    await act(work, failed);
    await reload();
    setBusy(false);
  };
  return (
    <li class="line">
      <span class="line-main">
        <span class="text">{name}</span>
        <small>
          {vehicleType}, {counted(proxies.length, "node")}, updated {agoText(updatedAt, Date.now())}
          {quota !== undefined &&
            `, ${bytesText(quota.Upload + quota.Download)} of ${bytesText(quota.Total)} used`}
        </small>
      </span>
      <Button
        label="Test"
        busy={busy}
        onPress={() => run(() => link.get(`${path}/healthcheck`), `${name} was not tested`)}
      />
      {vehicleType !== "Inline" && (
        <Button
          label="Update"
          busy={busy}
          onPress={() => run(() => link.send("PUT", path), `${name} was not updated`)}
        />
      )}
    </li>
  );
}
