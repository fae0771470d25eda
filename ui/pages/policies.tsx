import { useState } from "preact/hooks";
import type { Envelope, PolicyDocument, PolicyKind, PolicyStatus } from "#ui/api/governance-types.ts";
import { Confirm } from "#ui/parts/dialog.tsx";
import { MergeDialog } from "#ui/parts/merge-dialog.tsx";
import { Switch } from "#ui/parts/inputs.tsx";
import { Button, Panel } from "#ui/parts/small.tsx";
import { useAction, useEnvironment, useWords } from "#ui/state/context.ts";
import { policiesOf, titleOf, withPolicy } from "#ui/state/policy-document.ts";
import { type PolicyEditor, usePolicyEditor } from "#ui/state/policy-editor.ts";
import { WordedError } from "#ui/words/words.ts";
import { PolicyForm } from "./policy-form.tsx";
import { PolicyLines } from "./policy-lines.tsx";

interface Editing {
  readonly base: Envelope;
  readonly kind: PolicyKind;
  readonly policy: PolicyDocument | null;
}

interface Props {
  readonly enabled: boolean;
  readonly policies: readonly PolicyStatus[];
  readonly reload: () => Promise<void>;
}

/** The policies in force with what they have counted; every change is put in force at once. */
export function Policies({ enabled, policies, reload }: Props) {
  const words = useWords();
  const { t } = words;
  const [persist, setPersist] = useState(false);
  const [removing, setRemoving] = useState<PolicyStatus | null>(null);
  const editor = usePolicyEditor(persist, reload);
  const { editing, setEditing, edit, save, remove, turn, reset } = usePolicyActions(editor, reload);
  return (
    <Panel
      title={t("policies.title")}
      tools={
        <div class="tools">
          <Button label={t("policies.add")} onPress={() => edit(null)} disabled={!enabled} />
        </div>
      }
    >
      <div class="settings">
        <div class="setting">
          <Switch label={t("policies.trafficControl")} on={enabled} onChange={turn} />
        </div>
        <div class="setting">
          <Switch label={t("policies.persist")} on={persist} onChange={setPersist} />
        </div>
      </div>
      <PolicyLines
        enabled={enabled}
        policies={policies}
        onEdit={edit}
        onReset={reset}
        onRemove={setRemoving}
      />
      {editing !== null && (
        <PolicyForm
          kind={editing.kind}
          policy={editing.policy}
          onSave={save}
          onClose={() => setEditing(null)}
        />
      )}
      {removing !== null && (
        <Confirm
          title={t("policies.removeAsk")}
          text={t("policies.removeText", { name: titleOf(words, removing) })}
          action={t("common.remove")}
          onAnswer={(yes) => {
            setRemoving(null);
            if (yes) void remove(removing);
          }}
        />
      )}
      {editor.conflict !== null && <MergeDialog conflict={editor.conflict} onDone={editor.decide} />}
    </Panel>
  );
}

/** What the buttons do; each says by itself that it did not work. `editing` is the policy whose form is open. */
function usePolicyActions(editor: PolicyEditor, reload: () => Promise<void>) {
  const { link } = useEnvironment();
  const act = useAction();
  const { t } = useWords();
  const [editing, setEditing] = useState<Editing | null>(null);

  const edit = (status: PolicyStatus | null): Promise<boolean> =>
    act(async () => {
      const base = await editor.open();
      if (status === null) return setEditing({ base, kind: "device", policy: null });
      return setEditing({ base, ...found(base, status) });
    }, t("policies.notEdited"));
  const save = async (kind: PolicyKind, next: PolicyDocument): Promise<void> => {
    const { base, policy } = editing as Editing;
    await editor.save(base, withPolicy(base.config, kind, policy, next));
    setEditing(null);
  };
  const remove = (status: PolicyStatus): Promise<boolean> =>
    act(async () => {
      const base = await editor.open();
      const { kind, policy } = found(base, status);
      await editor.save(base, withPolicy(base.config, kind, policy, null));
    }, t("policies.notRemoved"));
  const turn = (on: boolean): Promise<boolean> =>
    act(async () => {
      const base = await editor.open();
      await editor.save(base, { ...base.config, enabled: on });
    }, t("policies.notSwitched"));
  const reset = ({ policy }: PolicyStatus): Promise<boolean> =>
    act(
      async () => {
        await link.send("POST", `api/svc/traffic-control/policies/${encodeURIComponent(policy.id)}/reset`);
        await reload();
      },
      t("policies.notReset"),
      t("policies.wasReset"),
    );
  return { editing, setEditing, edit, save, remove, turn, reset };
}

/** Its place in the document. */
function found({ config }: Envelope, { policy: { kind, id } }: PolicyStatus): Omit<Editing, "base"> {
  const match = policiesOf(config, kind).find((candidate) => candidate.id === id);
  if (match === undefined) throw new WordedError((t) => t("policies.gone"));
  return { kind, policy: match };
}
