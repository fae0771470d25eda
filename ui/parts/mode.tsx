import { MODES, type Mode } from "#ui/api/types.ts";
import { useAction, useEnvironment } from "#ui/state/context.ts";

const HINTS: Readonly<Record<Mode, string>> = {
  rule: "Rules decide",
  global: "Everything goes where the group GLOBAL points",
  direct: "Everything goes out directly",
};

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
  return (
    <div class="segments" role="group" aria-label="Mode">
      {MODES.map((entry) => (
        <button
          key={entry}
          type="button"
          aria-pressed={entry === mode}
          title={HINTS[entry]}
          onClick={() => void choose(entry)}
        >
          {entry}
        </button>
      ))}
    </div>
  );
}
