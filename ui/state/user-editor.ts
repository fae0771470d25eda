/** Changes to managed users: each goes out with the revision it was made on; who was too late sees what changed. */
import { useState } from "preact/hooks";
import type { ManagedUser, UserDetail, UserList } from "#ui/api/admin-types.ts";
import type { Method } from "#ui/api/request.ts";
import { ApiError } from "#ui/api/request.ts";
import type { Conflict } from "#ui/parts/merge-dialog.tsx";
import { useEnvironment } from "./context.ts";
import type { Json } from "./merge.ts";
import { changesOf, fieldsOfUser, type UserFields } from "./user-fields.ts";

interface Waiting {
  readonly conflict: Conflict;
  readonly again: (merged: Json) => Promise<unknown>;
}

export interface UserEditor {
  readonly conflict: Conflict | null;
  decide(merged: Json | null): Promise<void>;
  /** Null: it waits for a decision, or was given up. All throw what the Controller says. */
  create(list: UserList, inbound: string, fields: UserFields, before: UserFields): Promise<UserDetail | null>;
  update(list: UserList, user: ManagedUser, fields: UserFields): Promise<UserDetail | null>;
  /** `rotate-subscription`, `reset-traffic`, or a deletion with "". */
  act(user: ManagedUser, action: string): Promise<boolean>;
}

const pathOf = (id: string): string => `users/${encodeURIComponent(id)}`;

export function useUserEditor(onSaved: () => Promise<void>): UserEditor {
  const { admin } = useEnvironment();
  const [waiting, setWaiting] = useState<Waiting | null>(null);

  /** Sends; on a conflict puts the question and what to do with the answer. */
  const attempt = async <T>(
    send: () => Promise<T>,
    asked: () => Promise<Waiting>,
  ): Promise<{ readonly value: T } | null> => {
    try {
      const value = await send();
      await onSaved();
      return { value };
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
      setWaiting(await asked());
      await onSaved();
      return null;
    }
  };

  const update: UserEditor["update"] = async (list, user, fields) => {
    const inbound = list.inbounds.find(({ tag }) => tag === user.inbound) ?? { credential: "uuid" };
    const before = fieldsOfUser(user);
    const body = { ...changesOf(before, fields, inbound), revision: user.revision };
    const done = await attempt(
      () => admin.call<UserDetail>("PUT", pathOf(user.id), body),
      async () => {
        const now = await admin.call<UserDetail>("GET", pathOf(user.id));
        const conflict = { what: user.name, before, mine: fields, theirs: fieldsOfUser(now) };
        return { conflict, again: (merged) => update(list, now, merged as UserFields) };
      },
    );
    return done?.value ?? null;
  };

  const create: UserEditor["create"] = async (list, tag, fields, before) => {
    const inbound = list.inbounds.find((view) => view.tag === tag);
    if (inbound === undefined) throw new Error("there is no such listener any more");
    const { revision } = inbound;
    const body = { ...changesOf(before, fields, inbound), name: fields.name, inbound: tag, revision };
    const done = await attempt(
      () => admin.call<UserDetail>("POST", "users", body),
      async () => {
        const now = await admin.call<UserList>("GET", "users");
        const [was, are] = [list, now].map((view) => ({ users: namesIn(view, tag) }));
        const conflict = {
          what: `the users of ${tag}`,
          before: was as Json,
          mine: was as Json,
          theirs: are as Json,
        };
        return { conflict, again: () => create(now, tag, fields, before) };
      },
    );
    return done?.value ?? null;
  };

  const act: UserEditor["act"] = async (user, action) => {
    const { id, revision } = user;
    const method: Method = action === "" ? "DELETE" : "POST";
    const path = action === "" ? `${pathOf(id)}?revision=${revision}` : `${pathOf(id)}/${action}`;
    const done = await attempt(
      () => admin.call(method, path, action === "" ? undefined : { revision }),
      async () => {
        const now = await admin.call<UserDetail>("GET", pathOf(id));
        const before = fieldsOfUser(user);
        const conflict = { what: user.name, before, mine: before, theirs: fieldsOfUser(now) };
        return { conflict, again: () => act(now, action) };
      },
    );
    return done !== null;
  };

  const decide = async (merged: Json | null): Promise<void> => {
    const { again } = waiting as Waiting;
    setWaiting(null);
    if (merged !== null) await again(merged);
  };
  return { conflict: waiting?.conflict ?? null, decide, create, update, act };
}

function namesIn({ users }: UserList, tag: string): readonly string[] {
  return users.filter(({ inbound }) => inbound === tag).map(({ name }) => name);
}
