import { useState } from "preact/hooks";
import type { PolicyDocument, PolicyKind } from "#ui/api/governance-types.ts";
import { EditForm, useFields } from "#ui/parts/edit-form.tsx";
import { Select, Switch } from "#ui/parts/inputs.tsx";
import { fieldsOf, policyOf } from "#ui/state/policy-fields.ts";

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
  const { fields, set, text } = useFields(() => fieldsOf(policy ?? {}));
  return (
    <EditForm
      title={policy === null ? "New policy" : "Edit policy"}
      action="Save"
      onSave={() => onSave(kind, policyOf(kind, fields))}
      onClose={onClose}
    >
      {policy === null && <Select label="What it is about" value={kind} options={KINDS} onChange={setKind} />}
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
    </EditForm>
  );
}
