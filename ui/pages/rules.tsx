import { useMemo, useState } from "preact/hooks";
import type { Rule, RuleProvider } from "#ui/api/types.ts";
import { agoText, counted, countText } from "#ui/format.ts";
import { Switch } from "#ui/parts/inputs.tsx";
import { Button, Empty } from "#ui/parts/small.tsx";
import { TablePage, waitingText } from "#ui/parts/table-page.tsx";
import { useAction, useEnvironment, useResource } from "#ui/state/context.ts";
import { matching } from "#ui/state/filter.ts";
import { RuleProviders } from "./rule-providers.tsx";

const COLUMNS = ["No.", "Rule", "Target", "Hits", "Last hit", "On"];
/** Counters of longer lists are fetched by the button only: the answer is megabytes. */
const REFRESH_UP_TO = 5_000;
const REFRESH_MS = 5_000;

export function RulesPage() {
  const { link } = useEnvironment();
  const act = useAction();
  const [filter, setFilter] = useState("");
  const [long, setLong] = useState(true);
  const rules = useResource<{ rules: readonly Rule[] }>("rules", long ? 0 : REFRESH_MS);
  const providers = useResource<{ providers: Record<string, RuleProvider> }>("providers/rules");
  const all = rules.value?.rules ?? [];
  const isLong = rules.value === null || all.length > REFRESH_UP_TO;
  if (isLong !== long) setLong(isLong);
  const shown = useMemo(() => matching(all, filter, textOf), [all, filter]);
  const toggle = ({ index, type, payload }: Rule, on: boolean): Promise<boolean> =>
    act(
      async () => {
        await link.send("PATCH", "rules/disable", { [index]: !on });
        await rules.reload();
      },
      "The rule was not changed",
      `${type} ${payload} is ${on ? "on" : "off until the next reload"}`,
    );
  return (
    <TablePage
      title="Rules"
      filter={filter}
      onFilter={setFilter}
      filterLabel="Filter"
      filterHint="type, payload, target"
      tools={<Button label="Refresh" onPress={rules.reload} />}
      status={rules.value === null ? waitingText(rules.error) : statusText(shown.length, all)}
      error={rules.error ?? providers.error}
      nothing={rules.value !== null && shown.length === 0 ? <Nothing none={all.length === 0} /> : null}
      label="Rules"
      kind="rows-rules"
      columns={COLUMNS}
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
  if (none) return <Empty title="No rules">Without rules everything goes out directly.</Empty>;
  return <Empty title="Nothing matches the filter" />;
}

const textOf = ({ type, payload, proxy }: Rule): string => `${type} ${payload} ${proxy}`;

function statusText(shown: number, rules: readonly Rule[]): string {
  const all = rules.length;
  const text = shown === all ? counted(all, "rule") : `${countText(shown)} of ${counted(all, "rule")}`;
  const dead = rules.filter(({ unavailable }) => unavailable !== undefined).length;
  const lack = dead === 0 ? "" : `; ${countText(dead)} can match nothing`;
  return `${text}, the first that matches decides${lack}`;
}

function Cells({ rule, onToggle }: { readonly rule: Rule; readonly onToggle: (on: boolean) => unknown }) {
  const { index, type, payload, proxy, size, unavailable, extra } = rule;
  return (
    <>
      <span role="cell" class="c-index number">
        {index}
      </span>
      <span role="cell" class="c-main text">
        <span class="rule-type">{type}</span> {payload}
        {size > 0 && <small> {counted(size, "record")}</small>}
        {unavailable !== undefined && <small> {unavailable}: matches nothing</small>}
      </span>
      <span role="cell" class="c-way text">
        {proxy}
      </span>
      <span role="cell" class="c-hits number">
        {countText(extra.hitCount)}
      </span>
      <span role="cell" class="c-age number">
        {agoText(extra.hitAt, Date.now())}
      </span>
      <span role="cell" class="c-act">
        <Switch
          label={`Rule ${index}, ${type} ${payload}`}
          hideLabel
          on={!extra.disabled}
          onChange={onToggle}
        />
      </span>
    </>
  );
}
