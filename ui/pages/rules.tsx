import { useMemo, useState } from "preact/hooks";
import type { Rule, RuleProvider } from "#ui/api/types.ts";
import { Switch } from "#ui/parts/inputs.tsx";
import { useOrdering } from "#ui/parts/ordering.tsx";
import { Button, Empty } from "#ui/parts/small.tsx";
import { TablePage, waitingText } from "#ui/parts/table-page.tsx";
import { useAction, useEnvironment, useResource, useWords } from "#ui/state/context.ts";
import { matching } from "#ui/state/filter.ts";
import { timeKey, type SortKey } from "#ui/state/sorted.ts";
import type { PlainKey, Words } from "#ui/words/words.ts";
import { RuleProviders } from "./rule-providers.tsx";

const COLUMNS: readonly (readonly [PlainKey, SortKey<Rule>])[] = [
  ["rules.number", ({ index }) => index],
  ["rules.rule", ({ type, payload }) => `${type} ${payload}`],
  ["common.target", ({ proxy }) => proxy],
  ["rules.hits", ({ extra }) => extra.hitCount],
  ["rules.lastHit", ({ extra }) => timeKey(extra.hitAt)],
  ["rules.on", ({ extra }) => (extra.disabled ? 1 : 0)],
];
/** Counters of longer lists are fetched by the button only: the answer is megabytes. */
const REFRESH_UP_TO = 5_000;
const REFRESH_MS = 5_000;

export function RulesPage() {
  const { link } = useEnvironment();
  const act = useAction();
  const words = useWords();
  const { t } = words;
  const [filter, setFilter] = useState("");
  const [long, setLong] = useState(true);
  const rules = useResource<{ rules: readonly Rule[] }>("rules", long ? 0 : REFRESH_MS);
  const providers = useResource<{ providers: Record<string, RuleProvider> }>("providers/rules");
  const all = rules.value?.rules ?? [];
  const isLong = rules.value === null || all.length > REFRESH_UP_TO;
  if (isLong !== long) setLong(isLong);
  const matches = useMemo(() => matching(all, filter, textOf), [all, filter]);
  const columns = COLUMNS.map(([name, key]) => ({ name: t(name), key }));
  const { shown, ordering } = useOrdering("rules", matches, columns);
  const toggle = ({ index, type, payload }: Rule, on: boolean): Promise<boolean> =>
    act(
      async () => {
        await link.send("PATCH", "rules/disable", { [index]: !on });
        await rules.reload();
      },
      t("rules.notChanged"),
      t(on ? "rules.turnedOn" : "rules.turnedOff", { rule: `${type} ${payload}` }),
    );
  return (
    <TablePage
      title={t("page.rules")}
      filter={filter}
      onFilter={setFilter}
      filterLabel={t("common.filter")}
      filterHint={t("rules.filterHint")}
      tools={<Button label={t("rules.refresh")} onPress={rules.reload} />}
      status={rules.value === null ? waitingText(words, rules.error) : statusText(words, shown.length, all)}
      error={rules.error ?? providers.error}
      nothing={rules.value !== null && shown.length === 0 ? <Nothing none={all.length === 0} /> : null}
      label={t("page.rules")}
      kind="rows-rules"
      ordering={ordering}
      items={shown}
      keyOf={({ index }) => index}
      faded={({ extra, unavailable }) => extra.disabled || unavailable !== undefined}
      cells={(rule) => <Cells rule={rule} onToggle={(on) => toggle(rule, on)} />}
    >
      <RuleProviders providers={Object.values(providers.value?.providers ?? {})} reload={providers.reload} />
    </TablePage>
  );
}

function Nothing({ none }: { readonly none: boolean }) {
  const { t } = useWords();
  if (none) return <Empty title={t("rules.none")}>{t("rules.noneText")}</Empty>;
  return <Empty title={t("common.noFilterMatch")} />;
}

const textOf = ({ type, payload, proxy }: Rule): string => `${type} ${payload} ${proxy}`;

function statusText({ t }: Words, shown: number, rules: readonly Rule[]): string {
  const count = rules.length;
  const text = shown === count ? t("rules.count", { count }) : t("rules.someOf", { shown, count });
  const dead = rules.filter(({ unavailable }) => unavailable !== undefined).length;
  return dead === 0
    ? t("rules.status", { rules: text })
    : t("rules.statusDead", { rules: text, count: dead });
}

function Cells({ rule, onToggle }: { readonly rule: Rule; readonly onToggle: (on: boolean) => unknown }) {
  const words = useWords();
  const { t } = words;
  const { index, type, payload, proxy, size, unavailable, extra } = rule;
  return (
    <>
      <span role="cell" class="c-index number">
        {index}
      </span>
      <span role="cell" class="c-main text">
        <span class="rule-type">{type}</span> {payload}
        {size > 0 && <small> {t("rules.records", { count: size })}</small>}
        {unavailable !== undefined && <small> {t("rules.dead", { why: unavailable })}</small>}
      </span>
      <span role="cell" class="c-way text">
        {proxy}
      </span>
      <span role="cell" class="c-hits number">
        {words.count(extra.hitCount)}
      </span>
      <span role="cell" class="c-age number">
        {words.ago(extra.hitAt, Date.now())}
      </span>
      <span role="cell" class="c-act">
        <Switch
          label={t("rules.switch", { index: String(index), rule: `${type} ${payload}` })}
          hideLabel
          on={!extra.disabled}
          onChange={onToggle}
        />
      </span>
    </>
  );
}
