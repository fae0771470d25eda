import type { ManagedUser, UserList } from "#ui/api/admin-types.ts";
import { Confirm } from "#ui/parts/dialog.tsx";
import { MergeDialog } from "#ui/parts/merge-dialog.tsx";
import { useAction, useWords } from "#ui/state/context.ts";
import type { UsageHistory } from "#ui/state/usage-history.ts";
import { FIELD_NAMES, fieldsOfUser, NEW_USER, type UserFields } from "#ui/state/user-fields.ts";
import type { UserEditor } from "#ui/state/user-editor.ts";
import { UserDetails } from "./user-details.tsx";
import { UserForm } from "./user-form.tsx";

/** Which dialog is open, and for which user. */
export type Open =
  | { readonly kind: "nothing" | "new" }
  | { readonly kind: "details" | "edit" | "delete"; readonly user: ManagedUser };

interface DialogsProps {
  readonly open: Open;
  readonly setOpen: (next: Open) => void;
  readonly list: UserList;
  readonly history: UsageHistory;
  readonly editor: UserEditor;
}

/** The open dialog, and above it the one that a conflict needs. */
export function UserDialogs({ open, setOpen, list, history, editor }: DialogsProps) {
  const { t } = useWords();
  const { save, turn, run } = useUserActions(list, editor, setOpen);
  const current = "user" in open ? (list.users.find(({ id }) => id === open.user.id) ?? open.user) : null;
  const close = (): void => setOpen({ kind: "nothing" });
  return (
    <>
      {open.kind === "details" && current !== null && (
        <UserDetails
          user={current}
          usage={history.of(current.id)}
          onEdit={() => setOpen({ kind: "edit", user: current })}
          onTurn={(enabled) => turn(current, enabled)}
          onAct={(action) => run(current, action)}
          onDelete={() => setOpen({ kind: "delete", user: current })}
          onClose={close}
        />
      )}
      {(open.kind === "new" || open.kind === "edit") && (
        <UserForm
          inbounds={list.inbounds}
          user={"user" in open ? open.user : null}
          onSave={(inbound, fields) => save("user" in open ? open.user : null, inbound, fields)}
          onClose={close}
        />
      )}
      {open.kind === "delete" && (
        <Confirm
          title={t("users.deleteAsk", { name: open.user.name })}
          text={t("users.deleteText")}
          action={t("common.delete")}
          onAnswer={(yes) => {
            close();
            if (yes) void run(current ?? open.user, "");
          }}
        />
      )}
      {editor.conflict !== null && (
        <MergeDialog conflict={editor.conflict} names={FIELD_NAMES} onDone={editor.decide} />
      )}
    </>
  );
}

/** What the dialogs do; `save` throws what is wrong, the others say it. */
function useUserActions(list: UserList, editor: UserEditor, setOpen: (next: Open) => void) {
  const act = useAction();
  const { t } = useWords();
  const save = async (user: ManagedUser | null, inbound: string, fields: UserFields): Promise<void> => {
    const saved =
      user === null
        ? await editor.create(list, inbound, fields, NEW_USER)
        : await editor.update(list, user, fields);
    setOpen(saved === null ? { kind: "nothing" } : { kind: "details", user: saved });
  };
  const turn = (user: ManagedUser, enabled: boolean): Promise<boolean> =>
    act(
      async () => void (await editor.update(list, user, { ...fieldsOfUser(user), enabled })),
      t("users.notChanged", { name: user.name }),
    );
  const run = (user: ManagedUser, action: string): Promise<boolean> =>
    act(async () => void (await editor.act(user, action)), t("users.notChanged", { name: user.name }));
  return { save, turn, run };
}
