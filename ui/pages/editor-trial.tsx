import { useEffect, useState } from "preact/hooks";
import { Button } from "#ui/parts/small.tsx";
import { useWords } from "#ui/state/context.ts";

interface Props {
  /** When the page asked. */
  readonly secondsLeft: number;
  readonly onEnd: (how: "confirm" | "cancel") => Promise<boolean>;
  /** The time is up, and the program has gone back by itself. */
  readonly onOver: () => Promise<void>;
}

/** A configuration that goes back by itself unless it is kept. */
export function TrialBanner({ secondsLeft, onEnd, onOver }: Props) {
  const { t } = useWords();
  const [endMs] = useState(() => Date.now() + secondsLeft * 1000);
  const [left, setLeft] = useState(secondsLeft);
  useEffect(() => {
    const timer = setInterval(() => {
      const now = Math.ceil((endMs - Date.now()) / 1000);
      setLeft(Math.max(0, now));
      if (now < 0) void onOver();
    }, 1_000);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="banner trial" role="alert">
      <p>{t("editor.trialLeft", { count: left })}</p>
      <div class="actions">
        <Button label={t("editor.cancelTrial")} onPress={() => onEnd("cancel")} />
        <Button label={t("editor.keep")} kind="main" onPress={() => onEnd("confirm")} />
      </div>
    </div>
  );
}
