import { useMemo, useState } from "preact/hooks";
import type { Proxy, ProxyProvider } from "#ui/api/types.ts";
import { Input, Select } from "#ui/parts/inputs.tsx";
import { Rich } from "#ui/parts/rich.tsx";
import { Empty, Fault, Page } from "#ui/parts/small.tsx";
import { useResource, useWords } from "#ui/state/context.ts";
import { nodesOf } from "#ui/state/nodes.ts";
import { GroupPanel, MEMBER_ORDERS, type MemberOrder } from "./group-panel.tsx";
import { ProxyProvidersPanel } from "./proxy-providers.tsx";

const REFRESH_MS = 10_000;

export function GroupsPage() {
  const proxies = useResource<{ proxies: Record<string, Proxy> }>("proxies", REFRESH_MS);
  const providers = useResource<{ providers: Record<string, ProxyProvider> }>(
    "providers/proxies",
    REFRESH_MS,
  );
  const { t } = useWords();
  const [filter, setFilter] = useState("");
  const [order, setOrder] = useState<MemberOrder>("config");
  const reload = async (): Promise<void> => {
    await Promise.all([proxies.reload(), providers.reload()]);
  };
  const list = useMemo(() => Object.values(providers.value?.providers ?? {}), [providers.value]);
  const nodes = useMemo(() => nodesOf(proxies.value?.proxies ?? {}, list), [proxies.value, list]);
  return (
    <Page
      title={t("page.groups")}
      tools={
        <>
          <Input label={t("groups.filter")} type="search" value={filter} onInput={setFilter} />
          <Select
            label={t("groups.order")}
            value={order}
            options={MEMBER_ORDERS.map(([value, name]) => [value, t(name)])}
            onChange={setOrder}
          />
        </>
      }
    >
      <Fault text={proxies.error ?? providers.error} />
      {proxies.value !== null && nodes.groups.length === 0 && (
        <Empty title={t("groups.none")}>
          <Rich text={t("groups.noneText")} />
        </Empty>
      )}
      {nodes.groups.map((group) => (
        <GroupPanel
          key={group.name}
          group={group}
          nodes={nodes}
          filter={filter}
          order={order}
          reload={reload}
        />
      ))}
      <ProxyProvidersPanel providers={list} reload={reload} />
    </Page>
  );
}
