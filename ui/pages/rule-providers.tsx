import type { RuleProvider } from "#ui/api/types.ts";
import { Button } from "#ui/parts/small.tsx";
import { OrderSelect, useOrdering } from "#ui/parts/ordering.tsx";
import { timeKey } from "#ui/state/sorted.ts";
import { useAction, useEnvironment, useWords } from "#ui/state/context.ts";

interface Props {
  readonly providers: readonly RuleProvider[];
  readonly reload: () => Promise<void>;
}

/** Lists of rules from elsewhere, folded; nothing where there are none. */
export function RuleProviders({ providers, reload }: Props) {
  const { link } = useEnvironment();
  const act = useAction();
  const words = useWords();
  const { t } = words;
  const { shown, ordering } = useOrdering<RuleProvider>("rule-providers", providers, [
    { name: t("common.name"), key: ({ name }) => name },
    { name: t("common.kind"), key: ({ behavior, vehicleType }) => `${behavior} ${vehicleType}` },
    { name: t("page.rules"), key: ({ ruleCount }) => ruleCount },
    { name: t("common.updated"), key: ({ updatedAt }) => timeKey(updatedAt) },
  ]);
  if (providers.length === 0) return null;
  const update = async (name: string): Promise<void> => {
    const path = `providers/rules/${encodeURIComponent(name)}`;
    await act(() => link.send("PUT", path), t("common.notUpdated", { name }), t("rules.upToDate", { name }));
    await reload();
  };
  return (
    <details class="panel drawer">
      <summary class="panel-head">
        <h2>{t("rules.providers")}</h2>
        <span class="note">{words.count(providers.length)}</span>
      </summary>
      {shown.length > 1 && <OrderSelect ordering={ordering} />}
      <ul class="lines" aria-label={t("rules.providers")}>
        {shown.map(({ name, behavior, vehicleType, ruleCount, updatedAt }) => (
          <li key={name} class="line">
            <span class="line-main">
              <span class="text">{name}</span>
              <small>
                {behavior}, {vehicleType}, {t("rules.count", { count: ruleCount })},{" "}
                {t("common.updatedAgo", { ago: words.ago(updatedAt, Date.now()) })}
              </small>
            </span>
            {vehicleType !== "Inline" && <Button label={t("common.update")} onPress={() => update(name)} />}
          </li>
        ))}
      </ul>
    </details>
  );
}
