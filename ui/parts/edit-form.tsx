import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { textOf, useWords } from "#ui/state/context.ts";
import { Dialog } from "./dialog.tsx";
import { Input } from "./inputs.tsx";
import { Button } from "./small.tsx";

interface Props {
  readonly title: string;
  /** On the button that saves. */
  readonly action: string;
  /** Throws what is wrong, which is shown; closing is its own business. */
  readonly onSave: () => Promise<void>;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** A dialog with fields. While it saves it cannot be saved again. */
export function EditForm({ title, action, onSave, onClose, children }: Props) {
  const words = useWords();
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      await onSave();
    } catch (fault) {
      setError(textOf(words, fault));
    }
    setBusy(false);
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="fields" onSubmit={(event) => void submit(event)}>
        {children}
        <p class="error wide" role="alert">
          {error}
        </p>
        <div class="actions wide">
          <Button label={words.t("common.cancel")} onPress={onClose} />
          <Button label={action} kind="main" busy={busy} />
        </div>
      </form>
    </Dialog>
  );
}

/** The fields of a form, how to change some, and inputs for those that are texts. */
export function useFields<Fields extends object>(initial: () => Fields) {
  const [fields, setFields] = useState<Fields>(initial);
  const set = (change: Partial<Fields>): void => setFields((before) => ({ ...before, ...change }));
  const text = (key: keyof Fields, label: string, placeholder = "", required = false) => (
    <Input
      label={label}
      value={fields[key] as string}
      placeholder={placeholder}
      required={required}
      onInput={(value) => set({ [key]: value } as Partial<Fields>)}
    />
  );
  return { fields, set, text };
}
