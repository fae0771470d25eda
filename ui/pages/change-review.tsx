import { useEffect, useState } from "preact/hooks";
import type { Edit, Preview } from "#ui/api/setup-types.ts";
import { DiffView } from "#ui/editor/diff-view.tsx";
import { Button, Fault } from "#ui/parts/small.tsx";
import { TRIAL_SECONDS } from "#ui/state/config-editor.ts";
import { textOf, useEnvironment, useWords } from "#ui/state/context.ts";
import { applyEdits, previewOf } from "#ui/state/setup.ts";
import { RemarkList } from "./editor-remarks.tsx";

interface Props {
  readonly edits: readonly Edit[];
  readonly onBack: () => void;
  /** `isTrial`: it goes back by itself. */
  readonly onApplied: (isTrial: boolean) => void;
}

/** What edits would change in the file, what the program says of that, and the two ways to put it in force. */
export function ChangeReview({ edits, onBack, onApplied }: Props) {
  const { link } = useEnvironment();
  const words = useWords();
  const { t } = words;
  const [preview, setPreview] = useState<Preview | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    previewOf(link, edits).then(setPreview, (fault: unknown) => setError(textOf(words, fault)));
  }, [edits]);
  const apply = async (isTrial: boolean): Promise<void> => {
    if (preview === null) return;
    setBusy(true);
    setError("");
    try {
      await applyEdits(link, edits, preview.hash, isTrial);
      onApplied(isTrial);
    } catch (fault) {
      setError(`${t("setup.failed")}: ${textOf(words, fault)}`);
      setBusy(false);
    }
  };
  const isBad = preview === null || preview.remarks.some(({ severity }) => severity === "error");
  return (
    <>
      {preview !== null && (
        <>
          <DiffView before={preview.before} after={preview.text} />
          <RemarkList remarks={preview.remarks} onJump={() => {}} />
        </>
      )}
      <p class="note">{t("editor.trialText", { count: TRIAL_SECONDS })}</p>
      <Fault text={error} />
      <div class="actions">
        <Button label={t("setup.back")} onPress={onBack} />
        <Button label={t("editor.apply")} busy={busy} disabled={isBad} onPress={() => apply(false)} />
        <Button
          label={t("editor.try", { count: TRIAL_SECONDS })}
          kind="main"
          busy={busy}
          disabled={isBad}
          onPress={() => apply(true)}
        />
      </div>
    </>
  );
}
