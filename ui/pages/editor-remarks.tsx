import type { Remark } from "#ui/api/config-types.ts";
import { Tag } from "#ui/parts/small.tsx";
import { useWords } from "#ui/state/context.ts";

/** Further ones are counted; the marks in the text are all there. */
const MOST_SHOWN = 100;

interface Props {
  /** Null: not known yet. */
  readonly remarks: readonly Remark[] | null;
  readonly onJump: (remark: Remark) => void;
}

/** What the program says of the text, the errors first. */
export function RemarkList({ remarks, onJump }: Props) {
  const { t } = useWords();
  if (remarks === null) return <p class="status">{t("editor.checking")}</p>;
  const errors = remarks.filter(({ severity }) => severity === "error").length;
  const warnings = remarks.length - errors;
  const counts = [
    ...(errors === 0 ? [] : [t("editor.errors", { count: errors })]),
    ...(warnings === 0 ? [] : [t("editor.warnings", { count: warnings })]),
  ];
  return (
    <section class="remarks">
      <p class="status" role="status">
        {counts.length === 0 ? t("editor.good") : counts.join(", ")}
      </p>
      <ul class="lines">
        {remarks.slice(0, MOST_SHOWN).map((remark, at) => (
          <li key={at} class="line">
            <Tag kind={remark.severity === "error" ? "bad" : ""}>
              {remark.severity === "error" ? t("editor.error") : t("editor.warning")}
            </Tag>
            <button type="button" class="link remark" onClick={() => onJump(remark)}>
              <span class="number">{`${remark.line}:${remark.column}`}</span>
              <span class="break" lang="en">
                {remark.path === "" ? remark.message : `${remark.path}: ${remark.message}`}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
