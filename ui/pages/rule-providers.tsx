import type { RuleProvider } from "#ui/api/types.ts";
import { agoText, counted, countText } from "#ui/format.ts";
import { Button } from "#ui/parts/small.tsx";
import { useAction, useEnvironment } from "#ui/state/context.ts";

interface Props {
  readonly providers: readonly RuleProvider[];
  readonly reload: () => Promise<void>;
}

/** Lists of rules from elsewhere, folded; nothing where there are none. */
export function RuleProviders({ providers, reload }: Props) {
  const { link } = useEnvironment();
  const act = useAction();
  if (providers.length === 0) return null;
  const update = async (name: string): Promise<void> => {
    const path = `providers/rules/${encodeURIComponent(name)}`;
    await act(() => link.send("PUT", path), `${name} was not updated`, `${name} is up to date`);
    await reload();
  };
  return (
    <details class="panel drawer">
      <summary class="panel-head">
        <h2>Providers of rules</h2>
        <span class="note">{countText(providers.length)}</span>
      </summary>
      <ul class="lines">
        {providers.map(({ name, behavior, vehicleType, ruleCount, updatedAt }) => (
          <li key={name} class="line">
            <span class="line-main">
              <span class="text">{name}</span>
              <small>
                {behavior}, {vehicleType}, {counted(ruleCount, "rule")}, updated{" "}
                {agoText(updatedAt, Date.now())}
              </small>
            </span>
            {vehicleType !== "Inline" && <Button label="Update" onPress={() => update(name)} />}
          </li>
        ))}
      </ul>
    </details>
  );
}
