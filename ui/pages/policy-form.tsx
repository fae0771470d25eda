import { useState } from "preact/hooks";
import type { PolicyDocument, PolicyKind } from "#ui/api/governance-types.ts";
import { Dialog } from "#ui/parts/dialog.tsx";
import { Button, Input, Select, Switch } from "#ui/parts/small.tsx";
import { textOf } from "#ui/state/context.ts";
import { fieldsOf, policyOf, type PolicyFields } from "#ui/state/policy-fields.ts";

export const KINDS: readonly (readonly [PolicyKind, string])[] = [
  ["global", "All traffic"],
  ["device", "A device"],
  ["rule", "A rule"],
  ["target", "A node or group"],
];

interface Props {
  readonly kind: PolicyKind;
  /** Null: a new one. */
  readonly policy: PolicyDocument | null;
  /** Throws what is wrong with it. */
  readonly onSave: (kind: PolicyKind, policy: PolicyDocument) => Promise<void>;
  readonly onClose: () => void;
}

export function PolicyForm({ kind: first, policy, onSave, onClose }: Props) {
  const [kind, setKind] = useState(first);
  const [fields, setFields] = useState<PolicyFields>(() => fieldsOf(policy ?? {}));
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const set = (change: Partial<PolicyFields>): void => setFields({ ...fields, ...change });
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      await onSave(kind, policyOf(kind, fields));
    } catch (fault) {
      setError(textOf(fault));
    }
    setBusy(false);
  };
  const text = (key: keyof PolicyFields, label: string, placeholder = "", required = false) => (
    <Input
      label={label}
      value={fields[key] as string}
      placeholder={placeholder}
      required={required}
      onInput={(value) => set({ [key]: value })}
    />
  );
  return (
    <Dialog title={policy === null ? "New policy" : "Edit policy"} onClose={onClose}>
      <form class="fields" onSubmit={(event) => void submit(event)}>
        {policy === null && (
          <Select label="What it is about" value={kind} options={KINDS} onChange={setKind} />
        )}
        {text("name", "Name")}
        {policy === null && text("id", "Id", "made up if empty")}
        {kind === "device" && text("sources", "Addresses", "192.168.1.20, fd00::/64", true)}
        {kind === "device" && text("mac", "MAC address")}
        {kind === "rule" && text("type", "Rule type", "DOMAIN-SUFFIX", true)}
        {kind === "rule" && text("payload", "Payload", "example.org")}
        {kind === "target" && (
          <Select
            label="Kind"
            value={fields.kind}
            options={[
              ["group", "Group"],
              ["proxy", "Node"],
            ]}
            onChange={(value) => set({ kind: value })}
          />
        )}
        {(kind === "rule" || kind === "target") && text("target", "Target", "Proxy", true)}
        <div class="fields wide">
          {text("download", "Download", "no limit, or 20 Mbit/s")}
          {text("upload", "Upload", "no limit, or 5 Mbit/s")}
          {text("total", "Quota", "none, or 100 GiB")}
          {text("window", "Counted over", "30d")}
          {text("totalDownload", "Download quota", "none")}
          {text("totalUpload", "Upload quota", "none")}
          {text("overageDownload", "Download beyond the quota", "no limit, or 256 kbit/s")}
          {text("overageUpload", "Upload beyond the quota", "no limit")}
        </div>
        <Switch label="In force" on={fields.enabled} onChange={(enabled) => set({ enabled })} />
        <Switch
          label="Show the portal page beyond the quota"
          on={fields.portal}
          onChange={(portal) => set({ portal })}
        />
        <p class="error wide" role="alert">
          {error}
        </p>
        <div class="actions wide">
          <Button label="Cancel" onPress={onClose} />
          <Button label="Save" kind="main" busy={busy} />
        </div>
      </form>
    </Dialog>
  );
}
