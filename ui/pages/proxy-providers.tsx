import { useMemo, useState } from "preact/hooks";
import type { ProxyProvider } from "#ui/api/types.ts";
import { OrderSelect, useOrdering } from "#ui/parts/ordering.tsx";
import { Button, Panel } from "#ui/parts/small.tsx";
import { useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import { timeKey } from "#ui/state/sorted.ts";
import { realProviders } from "#ui/state/nodes.ts";
import type { Words } from "#ui/words/words.ts";

interface Props {
  readonly providers: readonly ProxyProvider[];
  readonly reload: () => Promise<void>;
}

/** Lists of nodes from elsewhere; nothing where there are none. */
export function ProxyProvidersPanel({ providers, reload }: Props) {
  const { t } = useWords();
  const real = useMemo(() => realProviders(providers), [providers]);
  const { shown, ordering } = useOrdering<ProxyProvider>("proxy-providers", real, [
    { name: t("common.name"), key: ({ name }) => name },
    { name: t("common.kind"), key: ({ vehicleType }) => vehicleType },
    { name: t("common.nodes"), key: ({ proxies }) => proxies.length },
    { name: t("common.updated"), key: ({ updatedAt }) => timeKey(updatedAt) },
  ]);
  if (real.length === 0) return null;
  return (
    <Panel title={t("groups.providers")}>
      {shown.length > 1 && <OrderSelect ordering={ordering} />}
      <ul class="lines" aria-label={t("groups.providers")}>
        {shown.map((provider) => (
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
  ];
  return (
    <li class="line">
      <span class="line-main">
        <span class="text">{name}</span>
        <small>{facts.join(", ")}</small>
        {quota !== undefined && <Quota {...quota} />}
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

/** What the provider says of the account: how much of its traffic is used, and until when it is good. */
function Quota({ Upload, Download, Total, Expire }: NonNullable<ProxyProvider["subscriptionInfo"]>) {
  const words = useWords();
  const { t } = words;
  const used = Upload + Download;
  const texts = [
    Total > 0
      ? t("groups.used", { used: words.bytes(used), total: words.bytes(Total) })
      : t("groups.usedInAll", { used: words.bytes(used) }),
    ...(Expire > 0 ? [expiryText(words, Expire)] : []),
  ];
  return (
    <>
      <small class={Expire > 0 && Expire * 1000 < Date.now() ? "bad" : undefined}>{texts.join(", ")}</small>
      {Total > 0 && (
        <progress class="wide" value={Math.min(used, Total)} max={Total} aria-label={texts[0] ?? ""} />
      )}
    </>
  );
}

function expiryText(words: Words, expire: number): string {
  const time = words.day(expire * 1000);
  return words.t(expire * 1000 < Date.now() ? "groups.expired" : "groups.expires", { time });
}
