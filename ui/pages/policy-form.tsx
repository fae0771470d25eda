import { useState } from "preact/hooks";
import type { PolicyDocument, PolicyKind } from "#ui/api/governance-types.ts";
import { EditForm, useFields } from "#ui/parts/edit-form.tsx";
import { Select, Switch } from "#ui/parts/inputs.tsx";
import { useWords } from "#ui/state/context.ts";
import { fieldsOf, policyOf } from "#ui/state/policy-fields.ts";
import type { PlainKey } from "#ui/words/words.ts";

const KINDS: readonly (readonly [PolicyKind, PlainKey])[] = [
  ["global", "policy.global"],
  ["device", "policy.device"],
  ["rule", "policy.rule"],
  ["target", "policy.target"],
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
  const { t } = useWords();
  const [kind, setKind] = useState(first);
  const { fields, set, text } = useFields(() => fieldsOf(policy ?? {}));
  return (
    <EditForm
      title={policy === null ? t("policy.new") : t("policy.edit")}
      action={t("common.save")}
      onSave={() => onSave(kind, policyOf(kind, fields))}
      onClose={onClose}
    >
      {policy === null && (
        <Select
          label={t("policy.about")}
          value={kind}
          options={KINDS.map(([value, name]) => [value, t(name)])}
          onChange={setKind}
        />
      )}
      {text("name", t("common.name"))}
      {policy === null && text("id", t("policy.id"), t("policy.madeUp"))}
      {kind === "device" && text("sources", t("policy.addresses"), "192.168.1.20, fd00::/64", true)}
      {kind === "device" && text("mac", t("policy.mac"))}
      {kind === "rule" && text("type", t("policy.ruleType"), "DOMAIN-SUFFIX", true)}
      {kind === "rule" && text("payload", t("policy.payload"), "example.org")}
      {kind === "target" && (
        <Select
          label={t("common.kind")}
          value={fields.kind}
          options={[
            ["group", t("policy.group")],
            ["proxy", t("policy.node")],
          ]}
          onChange={(value) => set({ kind: value })}
        />
      )}
      {(kind === "rule" || kind === "target") && text("target", t("common.target"), "Proxy", true)}
      <div class="fields wide">
        {text("download", t("common.download"), t("form.rateHint", { example: "20 Mbit/s" }))}
        {text("upload", t("common.upload"), t("form.rateHint", { example: "5 Mbit/s" }))}
        {text("total", t("policy.quota"), t("form.amountHint", { example: "100 GiB" }))}
        {text("window", t("policy.window"), "30d")}
        {text("totalDownload", t("policy.downloadQuota"), t("form.none"))}
        {text("totalUpload", t("policy.uploadQuota"), t("form.none"))}
        {text("overageDownload", t("policy.overageDown"), t("form.rateHint", { example: "256 kbit/s" }))}
        {text("overageUpload", t("policy.overageUp"), t("form.noLimit"))}
      </div>
      <Switch label={t("policy.inForce")} on={fields.enabled} onChange={(enabled) => set({ enabled })} />
      <Switch label={t("policy.portal")} on={fields.portal} onChange={(portal) => set({ portal })} />
    </EditForm>
  );
}
