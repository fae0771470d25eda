import { useState } from "preact/hooks";
import { CYCLES, type ManagedInbound, type ManagedUser } from "#ui/api/admin-types.ts";
import { EditForm, useFields } from "#ui/parts/edit-form.tsx";
import { Input, Select, Switch } from "#ui/parts/inputs.tsx";
import { fieldsOfUser, NEW_USER, type UserFields } from "#ui/state/user-fields.ts";

const RESETS = [
  ...CYCLES.map((cycle) => [cycle, cycle === "never" ? "never" : `every ${cycle} (UTC)`] as const),
  ["window", "rolls over a window"] as const,
];
const FLOWS = [
  ["", "none"],
  ["xtls-rprx-vision", "xtls-rprx-vision"],
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
  const [tag, setTag] = useState(user?.inbound ?? inbounds[0]?.tag ?? "");
  const { fields, set, text } = useFields(() => (user === null ? NEW_USER : fieldsOfUser(user)));
  const inbound = inbounds.find((view) => view.tag === tag);
  const kind = inbound?.credential === "password" ? "Password" : "UUID";
  return (
    <EditForm
      title={user === null ? "New user" : `Edit ${user.name}`}
      action={user === null ? "Create" : "Save"}
      onSave={() => onSave(tag, fields)}
      onClose={onClose}
    >
      {user === null && (
        <Select
          label="Listener"
          value={tag}
          options={inbounds.map((view) => [view.tag, `${view.tag} (${view.type})`] as const)}
          onChange={(next) => {
            setTag(next);
            set({ flow: "", credential: "" }); // another listener may have others, or none
          }}
        />
      )}
      {text("name", "Name", "", true)}
      {text("credential", kind, user === null ? "made up if empty" : "stays if empty")}
      {inbound?.flow === true && (
        <Select label="Flow" value={fields.flow} options={FLOWS} onChange={(flow) => set({ flow })} />
      )}
      <div class="fields wide">
        {text("quota", "Quota", "none, or 100 GiB")}
        <Select
          label="Quota begins anew"
          value={fields.reset}
          options={RESETS}
          onChange={(reset) => set({ reset })}
        />
        {fields.reset === "window" && text("window", "Quota counted over", "30d", true)}
        {text("download", "Download", "no limit, or 20 Mbit/s")}
        {text("upload", "Upload", "no limit, or 5 Mbit/s")}
        {text("connections", "Connections at once", "no limit")}
        {text("ips", "Addresses at once", "no limit")}
        <Input
          label="Expires"
          type="datetime-local"
          value={fields.expires}
          onInput={(expires) => set({ expires })}
        />
      </div>
      <Switch label="Enabled" on={fields.enabled} onChange={(enabled) => set({ enabled })} />
    </EditForm>
  );
}
