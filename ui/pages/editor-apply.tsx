import { useState } from "preact/hooks";
import { DiffView } from "#ui/editor/diff-view.tsx";
import { Dialog } from "#ui/parts/dialog.tsx";
import { Button } from "#ui/parts/small.tsx";
import { useWords } from "#ui/state/context.ts";
import { TRIAL_SECONDS, type ConfigEditor } from "#ui/state/config-editor.ts";

/** What would be put in force, and what the file holds now. */
export type Proposal = { readonly before: string; readonly after: string } & (
  | { readonly kind: "text" }
  | { readonly kind: "version"; readonly version: number }
);

interface Props {
  readonly proposal: Proposal;
  readonly editor: ConfigEditor;
  readonly onClose: () => void;
}

/** The changes, and the two ways to put them in force. */
export function ApplyDialog({ proposal, editor, onClose }: Props) {
  const { t } = useWords();
  const [busy, setBusy] = useState(false);
  const apply = async (isTrial: boolean): Promise<void> => {
    setBusy(true);
    const isDone =
      proposal.kind === "text"
        ? await editor.apply(isTrial)
        : await editor.rollback(proposal.version, isTrial);
    setBusy(false);
    if (isDone) onClose();
  };
  return (
    <Dialog
      title={
        proposal.kind === "text"
          ? t("editor.changes")
          : t("editor.versionTitle", { version: String(proposal.version) })
      }
      onClose={onClose}
    >
      <DiffView before={proposal.before} after={proposal.after} />
      <p class="note">{t("editor.trialText", { count: TRIAL_SECONDS })}</p>
      <div class="actions">
        <Button label={t("common.cancel")} onPress={onClose} />
        <Button label={t("editor.apply")} busy={busy} onPress={() => apply(false)} />
        <Button
          label={t("editor.try", { count: TRIAL_SECONDS })}
          kind="main"
          busy={busy}
          onPress={() => apply(true)}
        />
      </div>
    </Dialog>
  );
}
