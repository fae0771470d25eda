import { useEffect, useState } from "preact/hooks";
import type { ManagedInbound } from "#ui/api/admin-types.ts";
import { SCOPES, type NewToken, type Scope } from "#ui/api/token-types.ts";
import { CopyButton } from "#ui/parts/copy.tsx";
import { Dialog } from "#ui/parts/dialog.tsx";
import { EditForm, useFields } from "#ui/parts/edit-form.tsx";
import { Input, Select, Switch } from "#ui/parts/inputs.tsx";
import { Button } from "#ui/parts/small.tsx";
import { useEnvironment, useWords } from "#ui/state/context.ts";
import { WordedError } from "#ui/words/words.ts";

const MEANINGS = {
  read: "tokens.read",
  operate: "tokens.operate",
  users: "tokens.users",
  admin: "tokens.admin",
} as const;

type Fields = Readonly<Record<Scope, boolean>> & {
  readonly name: string;
  readonly listener: string;
  readonly expires: string;
};
const EMPTY: Fields = {
  name: "",
  listener: "",
  expires: "",
  read: true,
  operate: false,
  users: false,
  admin: false,
};

interface Props {
  readonly onMade: (token: NewToken) => Promise<void>;
  readonly onClose: () => void;
}

export function TokenForm({ onMade, onClose }: Props) {
  const { admin } = useEnvironment();
  const { t } = useWords();
  const { fields, set, text } = useFields<Fields>(() => EMPTY);
  const listeners = useListeners();
  const scopes = SCOPES.filter((scope) => fields[scope]);
  /** Only users can be kept to one listener. */
  const isUsersOnly = scopes.join() === "users";
  const save = async (): Promise<void> => {
    if (scopes.length === 0) throw new WordedError((say) => say("tokens.noScope"));
    const { name, listener, expires } = fields;
    const made = await admin.svc<NewToken>("POST", "tokens", {
      name: name.trim(),
      scopes,
      ...(isUsersOnly && listener !== "" ? { listener } : {}),
      ...(expires === "" ? {} : { expires_at: Date.parse(expires) }),
    });
    await onMade(made);
  };
  return (
    <EditForm title={t("tokens.new")} action={t("user.create")} onSave={save} onClose={onClose}>
      {text("name", t("common.name"), "", true)}
      <Input
        label={t("user.expires")}
        type="datetime-local"
        value={fields.expires}
        onInput={(expires) => set({ expires })}
      />
      <div class="wide settings">
        {SCOPES.map((scope) => (
          <div key={scope} class="setting">
            <Switch label={t(MEANINGS[scope])} on={fields[scope]} onChange={(on) => set({ [scope]: on })} />
          </div>
        ))}
      </div>
      {isUsersOnly && (
        <Select
          label={t("tokens.onlyListener")}
          value={fields.listener}
          options={[["", t("tokens.allListeners")], ...listeners.map((tag) => [tag, tag] as const)]}
          onChange={(listener) => set({ listener })}
        />
      )}
    </EditForm>
  );
}

/** Tags of those whose users are managed; none where that cannot be asked. */
function useListeners(): readonly string[] {
  const { admin } = useEnvironment();
  const [tags, setTags] = useState<readonly string[]>([]);
  useEffect(() => {
    admin.call<{ inbounds: readonly ManagedInbound[] }>("GET", "inbounds").then(
      ({ inbounds }) => setTags(inbounds.map(({ tag }) => tag)),
      () => {}, // a token can be made without
    );
  }, []);
  return tags;
}

/** The one time that a token is shown. */
export function NewTokenDialog({
  token,
  onClose,
}: {
  readonly token: NewToken;
  readonly onClose: () => void;
}) {
  const { t } = useWords();
  return (
    <Dialog title={t("tokens.made", { name: token.name })} onClose={onClose}>
      <p>{t("tokens.once")}</p>
      <p class="secret">
        <code>{token.token}</code>
        <CopyButton text={token.token} label={t("tokens.copy")} done={t("tokens.copied")} />
      </p>
      <div class="actions">
        <Button label={t("tokens.done")} kind="main" onPress={onClose} />
      </div>
    </Dialog>
  );
}
