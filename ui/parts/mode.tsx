import { MODES, type Mode } from "#ui/api/types.ts";
import { Segments } from "#ui/parts/inputs.tsx";
import { useAction, useEnvironment, useWords } from "#ui/state/context.ts";

const NAMES = { rule: "mode.rule", global: "mode.global", direct: "mode.direct" } as const;
const HINTS = { rule: "mode.ruleHint", global: "mode.globalHint", direct: "mode.directHint" } as const;

export function ModeChoice({
  mode,
  onChanged,
}: {
  readonly mode: Mode;
  readonly onChanged: (mode: Mode) => Promise<void>;
}) {
  const { link } = useEnvironment();
  const { t } = useWords();
  const act = useAction();
  const choose = (next: Mode): Promise<boolean> =>
    act(
      async () => {
        await link.send("PATCH", "configs", { mode: next });
        await onChanged(next);
      },
      t("mode.failed"),
      t("mode.changed", { mode: t(NAMES[next]), hint: t(HINTS[next]) }),
    );
  const options = MODES.map((one) => [one, t(NAMES[one]), t(HINTS[one])] as const);
  return <Segments label={t("mode.label")} value={mode} options={options} onChange={choose} />;
}
