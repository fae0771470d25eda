import type { Rollback } from "#ui/api/types.ts";
import { useWords } from "#ui/state/context.ts";
import { Rich } from "./rich.tsx";

interface Props {
  readonly rollback: Rollback;
  /** Unix time. */
  readonly sinceMs: number;
  /** The key that names the store. */
  readonly setting: string;
  /** What is as it was then. */
  readonly lost: string;
}

export function RollbackBanner({ rollback, sinceMs, setting, lost }: Props) {
  const words = useWords();
  const { t } = words;
  const text = t("rollback.text", {
    ago: t("unit.ago", { duration: words.duration(Date.now() - sinceMs) }),
    found: words.count(rollback.found_generation),
    seen: words.count(rollback.seen_generation),
    lost,
  });
  return (
    <div class="banner" role="alert">
      <p>
        <strong>{t("rollback.title")}</strong> {text}
      </p>
      <p>
        <Rich text={t("rollback.advice", { setting })} />
      </p>
    </div>
  );
}
