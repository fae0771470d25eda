import { MODES, type Mode } from "#ui/api/types.ts";
import { Segments } from "#ui/parts/inputs.tsx";
import { useAction, useEnvironment } from "#ui/state/context.ts";

const HINTS: Readonly<Record<Mode, string>> = {
  rule: "Rules decide",
  global: "Everything goes where the group GLOBAL points",
  direct: "Everything goes out directly",
};

const OPTIONS = MODES.map((mode) => [mode, mode, HINTS[mode]] as const);

export function ModeChoice({
  mode,
  onChanged,
}: {
  readonly mode: Mode;
  readonly onChanged: () => Promise<void>;
}) {
  const { link } = useEnvironment();
  const act = useAction();
  const choose = (next: Mode): Promise<boolean> =>
    act(
      async () => {
        await link.send("PATCH", "configs", { mode: next });
        await onChanged();
      },
      "The mode was not changed",
      `Mode ${next}: ${HINTS[next].toLowerCase()}`,
    );
  return <Segments label="Mode" value={mode} options={OPTIONS} onChange={choose} />;
}
