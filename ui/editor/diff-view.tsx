import { useMemo } from "preact/hooks";
import { useWords } from "#ui/state/context.ts";
import { diffLines, nearChanges } from "./line-diff.ts";

const SIGNS = { same: " ", removed: "−", added: "+" } as const;

/** Two texts, as lines that go and come, with what is around them. */
export function DiffView({ before, after }: { readonly before: string; readonly after: string }) {
  const { t } = useWords();
  const lines = useMemo(() => nearChanges(diffLines(before, after)), [before, after]);
  if (before === after) return <p class="note">{t("editor.same")}</p>;
  return (
    <div class="diff" dir="ltr" tabIndex={0} role="region" aria-label={t("editor.changes")}>
      {lines.map((line, at) =>
        line === null ? (
          <p key={at} class="diff-gap">
            …
          </p>
        ) : (
          <p key={at} class={`diff-line ${line.kind}`}>
            <span class="diff-number">{line.number}</span>
            <span>{SIGNS[line.kind]}</span>
            <span class="diff-text">{line.text}</span>
          </p>
        ),
      )}
    </div>
  );
}
