import { useState } from "preact/hooks";
import type { ManagedInbound, ManagedUser } from "#ui/api/admin-types.ts";
import { EditForm, useFields } from "#ui/parts/edit-form.tsx";
import { Input, Select, Switch } from "#ui/parts/inputs.tsx";
import { TextArea } from "#ui/parts/inputs-area.tsx";
import { useWords } from "#ui/state/context.ts";
import { VISION } from "#ui/state/recipes.ts";
import { fieldsOfUser, NEW_USER, type UserFields } from "#ui/state/user-fields.ts";

/** The cycles of the API, and a window that rolls; each with the key of its name. */
export const RESETS = [
  ["never", "user.never"],
  ["day", "user.everyDay"],
  ["week", "user.everyWeek"],
  ["month", "user.everyMonth"],
  ["window", "user.window"],
] as const;

interface Props {
  readonly inbounds: readonly ManagedInbound[];
  /** Null: a new one. */
  readonly user: ManagedUser | null;
  /** Throws what is wrong with it. */
  readonly onSave: (inbound: string, fields: UserFields) => Promise<void>;
  readonly onClose: () => void;
}

export function UserForm({ inbounds, user, onSave, onClose }: Props) {
  const { t } = useWords();
  const [tag, setTag] = useState(user?.inbound ?? inbounds[0]?.tag ?? "");
  const { fields, set, text } = useFields(() => (user === null ? NEW_USER : fieldsOfUser(user)));
  const inbound = inbounds.find((view) => view.tag === tag);
  const kind = inbound?.credential === "password" ? t("user.password") : t("user.uuid");
  return (
    <EditForm
      title={user === null ? t("users.new") : t("user.editOne", { name: user.name })}
      action={user === null ? t("user.create") : t("common.save")}
      onSave={() => onSave(tag, fields)}
      onClose={onClose}
    >
      {user === null && (
        <Select
          label={t("common.listener")}
          value={tag}
          options={inbounds.map((view) => [view.tag, `${view.tag} (${view.type})`] as const)}
          onChange={(next) => {
            setTag(next);
            set({ flow: "", credential: "" }); // another listener may have others, or none
          }}
        />
      )}
      {text("name", t("common.name"), "", true)}
      {text("credential", kind, user === null ? t("user.madeUp") : t("user.stays"))}
      {inbound?.flow === true && (
        <Select
          label={t("user.flow")}
          value={fields.flow}
          options={[
            ["", t("user.noFlow")],
            [VISION, VISION],
          ]}
          onChange={(flow) => set({ flow })}
        />
      )}
      <div class="fields wide">
        {text("quota", t("user.quota"), t("form.amountHint", { example: "100 GiB" }))}
        <Select
          label={t("user.quotaReset")}
          value={fields.reset}
          options={RESETS.map(([value, name]) => [value, t(name)] as const)}
          onChange={(reset) => set({ reset })}
        />
        {fields.reset === "window" && text("window", t("user.quotaWindow"), "30d", true)}
        {text("download", t("common.download"), t("form.rateHint", { example: "20 Mbit/s" }))}
        {text("upload", t("common.upload"), t("form.rateHint", { example: "5 Mbit/s" }))}
        {text("connections", t("user.connectionLimit"), t("form.noLimit"))}
        {text("ips", t("user.addressLimit"), t("form.noLimit"))}
        <Input
          label={t("user.expires")}
          type="datetime-local"
          value={fields.expires}
          onInput={(expires) => set({ expires })}
        />
        {text("labels", t("user.labels"), t("user.labelsHint"))}
      </div>
      <TextArea
        label={t("user.note")}
        value={fields.note}
        rows={3}
        dir="auto"
        onInput={(note) => set({ note })}
      />
      <Switch label={t("user.enabled")} on={fields.enabled} onChange={(enabled) => set({ enabled })} />
    </EditForm>
  );
}
