import type { RuleProvider } from "#ui/api/types.ts";
import { Button } from "#ui/parts/small.tsx";
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
      <ul class="lines">
        {providers.map(({ name, behavior, vehicleType, ruleCount, updatedAt }) => (
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
