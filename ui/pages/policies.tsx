import { useState } from "preact/hooks";
import type { Envelope, PolicyDocument, PolicyKind, PolicyStatus } from "#ui/api/governance-types.ts";
import { Confirm } from "#ui/parts/dialog.tsx";
import { MergeDialog } from "#ui/parts/merge-dialog.tsx";
import { Switch } from "#ui/parts/inputs.tsx";
import { Button, Panel } from "#ui/parts/small.tsx";
import { useAction, useEnvironment } from "#ui/state/context.ts";
import { policiesOf, titleOf, withPolicy } from "#ui/state/policy-document.ts";
import { type PolicyEditor, usePolicyEditor } from "#ui/state/policy-editor.ts";
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
  const [persist, setPersist] = useState(false);
  const [removing, setRemoving] = useState<PolicyStatus | null>(null);
  const editor = usePolicyEditor(persist, reload);
  const { editing, setEditing, edit, save, remove, turn, reset } = usePolicyActions(editor, reload);
  return (
    <Panel
      title="Policies"
      tools={
        <div class="tools">
          <Button label="Add a policy" onPress={() => edit(null)} disabled={!enabled} />
        </div>
      }
    >
      <div class="settings">
        <div class="setting">
          <Switch label="Traffic control" on={enabled} onChange={turn} />
        </div>
        <div class="setting">
          <Switch label="Write changes into the configuration file" on={persist} onChange={setPersist} />
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
          title="Remove this policy?"
          text={`${titleOf(removing)} is neither counted nor limited any more. What was counted is kept for a while.`}
          action="Remove"
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
  const [editing, setEditing] = useState<Editing | null>(null);

  const edit = (status: PolicyStatus | null): Promise<boolean> =>
    act(async () => {
      const base = await editor.open();
      if (status === null) return setEditing({ base, kind: "device", policy: null });
      return setEditing({ base, ...found(base, status) });
    }, "The policies cannot be edited");
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
    }, "It was not removed");
  const turn = (on: boolean): Promise<boolean> =>
    act(async () => {
      const base = await editor.open();
      await editor.save(base, { ...base.config, enabled: on });
    }, "Traffic control was not switched");
  const reset = ({ policy }: PolicyStatus): Promise<boolean> =>
    act(
      async () => {
        await link.send("POST", `api/svc/traffic-control/policies/${encodeURIComponent(policy.id)}/reset`);
        await reload();
      },
      "It was not reset",
      "Counters and quota begin anew",
    );
  return { editing, setEditing, edit, save, remove, turn, reset };
}

/** Its place in the document. */
function found({ config }: Envelope, { policy: { kind, id } }: PolicyStatus): Omit<Editing, "base"> {
  const match = policiesOf(config, kind).find((candidate) => candidate.id === id);
  if (match === undefined) throw new Error("another user has removed it meanwhile");
  return { kind, policy: match };
}
