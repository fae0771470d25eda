import { useState } from "preact/hooks";
import type { Edit } from "#ui/api/setup-types.ts";
import { Dialog } from "#ui/parts/dialog.tsx";
import { ChangeReview } from "./change-review.tsx";
import { ChangeTrial } from "./change-trial.tsx";

interface Props {
  readonly title: string;
  readonly edits: readonly Edit[];
  readonly onChanged: () => Promise<void>;
  readonly onClose: () => void;
}

/** Edits of the file that need no further question. */
export function ChangeDialog({ title, edits, onChanged, onClose }: Props) {
  const [isTrial, setTrial] = useState(false);
  const end = (): void => {
    void onChanged();
    onClose();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {isTrial ? (
        <ChangeTrial onEnd={end} />
      ) : (
        <ChangeReview
          edits={edits}
          onBack={onClose}
          onApplied={(trial) => (trial ? setTrial(true) : end())}
        />
      )}
    </Dialog>
  );
}
