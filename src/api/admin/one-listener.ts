/** Managed users as the holder of a token for one listener has them: other listeners are not there. */
import { ApiError } from "#core/errors.ts";
import type { UserAdmin } from "#core/users.ts";

export function ofListener(all: UserAdmin, listener: string): UserAdmin {
  /** Answers as for an id that there is not. */
  const demand = (id: string): string => {
    if (all.user(id)?.inbound !== listener) throw new ApiError(404, "user not found");
    return id;
  };
  return {
    secret: all.secret,
    rollback: all.rollback,
    fleet: null,
    formerSubscription: (path) => all.formerSubscription(path),
    protocols: () => all.protocols(),
    inbounds: () => all.inbounds().filter(({ tag }) => tag === listener),
    users: (inbound) => (inbound === null || inbound === listener ? all.users(listener) : []),
    user(id) {
      const user = all.user(id);
      return user?.inbound === listener ? user : null;
    },
    usage: (id) => (all.user(id)?.inbound === listener ? all.usage(id) : null),
    history(id, days) {
      const history = all.history(id, days);
      return history?.inbound === listener ? history : null;
    },
    limitKinds: () => all.limitKinds(),
    async create(draft) {
      if (draft.inbound !== listener) throw new ApiError(404, "inbound not found or not managed");
      return all.create(draft);
    },
    update: async (id, change) => all.update(demand(id), change),
    remove: async (id, revision) => all.remove(demand(id), revision),
    resetTraffic: async (id, revision) => all.resetTraffic(demand(id), revision),
    rotateSubscription: async (id, revision) => all.rotateSubscription(demand(id), revision),
    subscription: (token) => all.subscription(token),
  };
}
