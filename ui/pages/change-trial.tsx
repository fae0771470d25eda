import { useState } from "preact/hooks";
import { TRIAL_SECONDS } from "#ui/state/config-editor.ts";
import { useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import { endTrial } from "#ui/state/setup.ts";
import { TrialBanner } from "./editor-trial.tsx";

interface Props {
  /** `isKept` false: the old configuration is in force again. */
  readonly onEnd: (isKept: boolean) => void;
  readonly secondsLeft?: number;
}

/** A change of the file that is on trial: keeps it or takes it back. */
export function ChangeTrial({ onEnd, secondsLeft = TRIAL_SECONDS }: Props) {
  const { link } = useEnvironment();
  const { t } = useWords();
  const act = useAction();
  const [isOver, setOver] = useState(false);
  const over = (isKept: boolean): void => {
    if (isOver) return;
    setOver(true);
    onEnd(isKept);
  };
  const end = async (how: "confirm" | "cancel"): Promise<boolean> => {
    const done = how === "confirm" ? t("editor.applied") : t("editor.takenBack");
    const isDone = await act(() => endTrial(link, how), t("editor.notEnded"), done);
    if (isDone) over(how === "confirm");
    return isDone;
  };
  if (isOver) return null;
  return <TrialBanner secondsLeft={secondsLeft} onEnd={end} onOver={async () => over(false)} />;
}
