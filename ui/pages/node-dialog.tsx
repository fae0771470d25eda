import { useState } from "preact/hooks";
import type { Edit, Setup } from "#ui/api/setup-types.ts";
import { Dialog } from "#ui/parts/dialog.tsx";
import { TextArea } from "#ui/parts/inputs-area.tsx";
import { Switch } from "#ui/parts/inputs.tsx";
import { Button, Fault } from "#ui/parts/small.tsx";
import { textOf, useEnvironment, useWords } from "#ui/state/context.ts";
import { nodeEdits } from "#ui/state/recipes.ts";
import { ChangeReview } from "./change-review.tsx";
import { ChangeTrial } from "./change-trial.tsx";

interface Linked {
  readonly nodes: readonly { readonly name: string }[];
  readonly skipped: number;
}

interface Props {
  readonly setup: Setup;
  readonly onChanged: () => Promise<void>;
  readonly onClose: () => void;
}

/** New nodes of the file from share links. */
export function NodeDialog({ setup, onChanged, onClose }: Props) {
  const { link } = useEnvironment();
  const words = useWords();
  const { t } = words;
  const [text, setText] = useState("");
  const [groups, setGroups] = useState<readonly string[]>([]);
  const [linked, setLinked] = useState<Linked | null>(null);
  const [isTrial, setTrial] = useState(false);
  const [error, setError] = useState("");
  const [edits, setEdits] = useState<readonly Edit[]>([]);
  const read = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      const found = await link.call<Linked>("POST", "api/svc/setup/nodes", { text });
      setEdits(nodeEdits(found.nodes, groups));
      setLinked(found);
      setError("");
    } catch (fault) {
      setError(textOf(words, fault));
    }
  };
  const turn = (group: string, on: boolean): void =>
    setGroups(on ? [...groups, group] : groups.filter((one) => one !== group));
  return (
    <Dialog title={t("setup.newNodes")} onClose={onClose}>
      {isTrial ? (
        <ChangeTrial
          onEnd={() => {
            void onChanged();
            onClose();
          }}
        />
      ) : linked === null ? (
        <form class="fields" onSubmit={(event) => void read(event)}>
          <TextArea label={t("setup.links")} value={text} onInput={setText} rows={6} required />
          {setup.groups.length > 0 && (
            <fieldset class="wide choices">
              <legend>{t("setup.inGroups")}</legend>
              {setup.groups.map(({ name }) => (
                <Switch
                  key={name}
                  label={name}
                  on={groups.includes(name)}
                  onChange={(on) => turn(name, on)}
                />
              ))}
            </fieldset>
          )}
          <Fault text={error} />
          <div class="actions wide">
            <Button label={t("common.cancel")} onPress={onClose} />
            <Button label={t("setup.read")} kind="main" />
          </div>
        </form>
      ) : (
        <>
          {linked.skipped > 0 && <p class="note">{t("setup.skipped", { count: linked.skipped })}</p>}
          <ChangeReview
            edits={edits}
            onBack={() => setLinked(null)}
            onApplied={(trial) => {
              void onChanged();
              if (trial) setTrial(true);
              else onClose();
            }}
          />
        </>
      )}
    </Dialog>
  );
}
