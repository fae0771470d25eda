import { useState } from "preact/hooks";
import type { Edit, Setup } from "#ui/api/setup-types.ts";
import { Dialog } from "#ui/parts/dialog.tsx";
import { useFields } from "#ui/parts/edit-form.tsx";
import { Button, Fault } from "#ui/parts/small.tsx";
import { textOf, useEnvironment, useWords } from "#ui/state/context.ts";
import { isManaged, listenerEdits, RECIPES, type ListenerFields } from "#ui/state/recipes.ts";
import { makeFor } from "#ui/state/setup.ts";
import { ChangeReview } from "./change-review.tsx";
import { ChangeTrial } from "./change-trial.tsx";
import { firstFields, ListenerForm } from "./listener-form.tsx";
import { ListenerUsers } from "./listener-users.tsx";

type Step =
  | { readonly kind: "form" }
  | { readonly kind: "review"; readonly edits: readonly Edit[]; readonly secret: string }
  | { readonly kind: "done"; readonly isTrial: boolean };

interface Props {
  readonly setup: Setup;
  readonly onChanged: () => Promise<void>;
  readonly onClose: () => void;
}

/** A new listener: what it shall be, the change of the file, its first user. */
export function ListenerWizard({ setup, onChanged, onClose }: Props) {
  const { link, admin } = useEnvironment();
  const words = useWords();
  const { t } = words;
  const form = useFields<ListenerFields>(() => firstFields(setup));
  const [step, setStep] = useState<Step>({ kind: "form" });
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const { fields } = form;
  const managed = isManaged(setup, RECIPES[fields.recipe]);
  const review = async (): Promise<void> => {
    setBusy(true);
    setError("");
    try {
      const made = await makeFor(link, fields, managed && setup.svc === null);
      setStep({ kind: "review", edits: listenerEdits(setup, fields, made), secret: made.secret ?? "" });
    } catch (fault) {
      setError(textOf(words, fault));
    }
    setBusy(false);
  };
  const applied = async (isTrial: boolean, secret: string): Promise<void> => {
    if (secret !== "") await admin.unlock(secret).catch(() => {}); // the next step asks again
    setStep({ kind: "done", isTrial });
    await onChanged();
  };
  return (
    <Dialog title={t("setup.newListener")} onClose={onClose}>
      {step.kind === "form" && (
        <ListenerForm
          setup={setup}
          form={form}
          busy={busy}
          onReview={() => void review()}
          onClose={onClose}
        />
      )}
      <Fault text={error} />
      {step.kind === "review" && (
        <ChangeReview
          edits={step.edits}
          onBack={() => setStep({ kind: "form" })}
          onApplied={(isTrial) => void applied(isTrial, step.secret)}
        />
      )}
      {step.kind === "done" && (
        <>
          <p>{t("setup.inForce", { name: fields.name.trim() })}</p>
          {step.isTrial && (
            <ChangeTrial
              onEnd={(isKept) => {
                void onChanged();
                if (!isKept) onClose();
              }}
            />
          )}
          <ListenerUsers name={fields.name.trim()} isManaged={managed} />
          <div class="actions">
            <Button label={t("setup.done")} onPress={onClose} />
          </div>
        </>
      )}
    </Dialog>
  );
}
