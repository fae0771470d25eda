import { useMemo, useState } from "preact/hooks";
import type { Proxy, ProxyProvider } from "#ui/api/types.ts";
import { Input, Select } from "#ui/parts/inputs.tsx";
import { Rich } from "#ui/parts/rich.tsx";
import { Button, Empty, Fault, Page } from "#ui/parts/small.tsx";
import { useResource, useWords } from "#ui/state/context.ts";
import { useDelayTests } from "#ui/state/delay-tests.ts";
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
  const tests = useDelayTests(reload);
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
          {tests.state === null ? (
            <Button label={t("groups.testNodes")} onPress={() => tests.run(nodes)} />
          ) : (
            <Button label={t("common.cancel")} onPress={tests.cancel} />
          )}
        </>
      }
    >
      <Fault text={proxies.error ?? providers.error} />
      {tests.state !== null && <TestProgress {...tests.state} />}
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

function TestProgress({ done, total }: { readonly done: number; readonly total: number }) {
  const { t } = useWords();
  return (
    <div class="panel">
      <p role="status">{t("groups.tested", { done, count: total })}</p>
      <progress class="wide" value={done} max={total} aria-label={t("groups.testNodes")} />
    </div>
  );
}
