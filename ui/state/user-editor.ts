/** Changes to managed users: each is sent with the revision it was made on; where that is no longer the present one the user sees what changed. */
import type { AdminLink } from "#ui/api/admin.ts";
import type { ManagedUser, UserDetail, UserList } from "#ui/api/admin-types.ts";
import { WordedError, type Words } from "#ui/words/words.ts";
import { useConflicts, type Conflicts, type Question } from "./conflicts.ts";
import { useEnvironment } from "./context.ts";
import { changesOf, fieldsOfUser, type UserFields } from "./user-fields.ts";

export interface UserEditor extends Pick<Conflicts, "conflict" | "decide"> {
  /** Null: it waits for a decision, or was given up. All throw what the Controller says. */
  create(list: UserList, inbound: string, fields: UserFields, before: UserFields): Promise<UserDetail | null>;
  update(list: UserList, user: ManagedUser, fields: UserFields): Promise<UserDetail | null>;
  /** `rotate-subscription`, `reset-traffic`, or a deletion with "". */
  act(user: ManagedUser, action: string): Promise<boolean>;
}

const pathOf = (id: string): string => `users/${encodeURIComponent(id)}`;

/** `onSaved` is called whenever the list may be another one, after a conflict too. */
export function useUserEditor(onSaved: () => Promise<void>): UserEditor {
  const { admin } = useEnvironment();
  const { conflict, decide, attempt } = useConflicts();
  const tell = async <T>(
    send: () => Promise<T>,
    ask: () => Promise<Question>,
  ): Promise<{ value: T } | null> => {
    const done = await attempt(send, ask);
    await onSaved();
    return done;
  };

  const update: UserEditor["update"] = async (list, user, fields) => {
    const inbound = list.inbounds.find(({ tag }) => tag === user.inbound) ?? { credential: "uuid" };
    const body = { ...changesOf(fieldsOfUser(user), fields, inbound), revision: user.revision };
    const done = await tell(
      () => admin.call<UserDetail>("PUT", pathOf(user.id), body),
      () => askAboutUser(admin, user, fields, (now, merged) => update(list, now, merged)),
    );
    return done?.value ?? null;
  };
  const create: UserEditor["create"] = async (list, tag, fields, before) => {
    const inbound = list.inbounds.find((view) => view.tag === tag);
    if (inbound === undefined) throw new WordedError((t) => t("users.noListener"));
    const { revision } = inbound;
    const body = { ...changesOf(before, fields, inbound), name: fields.name, inbound: tag, revision };
    const done = await tell(
      () => admin.call<UserDetail>("POST", "users", body),
      () => askAboutList(admin, list, tag, (now) => create(now, tag, fields, before)),
    );
    return done?.value ?? null;
  };
  const act: UserEditor["act"] = async (user, action) => {
    const done = await tell(
      () => sendAction(admin, user, action),
      () => askAboutUser(admin, user, fieldsOfUser(user), (now) => act(now, action)),
    );
    return done !== null;
  };
  return { conflict, decide, create, update, act };
}

function sendAction(admin: AdminLink, { id, revision }: ManagedUser, action: string): Promise<unknown> {
  if (action === "") return admin.call("DELETE", `${pathOf(id)}?revision=${revision}`);
  return admin.call("POST", `${pathOf(id)}/${action}`, { revision });
}

/** What became of a user meanwhile, beside what was to become of them. */
async function askAboutUser(
  admin: AdminLink,
  user: ManagedUser,
  mine: UserFields,
  again: (now: ManagedUser, merged: UserFields) => Promise<unknown>,
): Promise<Question> {
  const now = await admin.call<UserDetail>("GET", pathOf(user.id));
  const conflict = { what: () => user.name, before: fieldsOfUser(user), mine, theirs: fieldsOfUser(now) };
  return { conflict, again: (merged) => again(now, merged as UserFields) };
}

/** The present users of a listener: the new one must not replace any of them. */
async function askAboutList(
  admin: AdminLink,
  list: UserList,
  tag: string,
  again: (now: UserList) => Promise<unknown>,
): Promise<Question> {
  const now = await admin.call<UserList>("GET", "users");
  const [before, theirs] = [namesIn(list, tag), namesIn(now, tag)];
  return {
    conflict: { what: (t: Words["t"]) => t("users.ofListener", { name: tag }), before, mine: before, theirs },
    again: () => again(now),
  };
}

function namesIn({ users }: UserList, tag: string): { readonly users: readonly string[] } {
  return { users: users.filter(({ inbound }) => inbound === tag).map(({ name }) => name) };
}
