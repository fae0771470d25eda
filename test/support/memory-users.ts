/** Managed users in memory, one listener: for tests of the API alone. */
import { ApiError } from "#core/errors.ts";
import { NO_LIMITS } from "#users/limits.ts";
import { NO_REMARKS } from "#users/remarks.ts";
import type { UserAdmin, UserChange, UserDetailView, UserDraft, UsersControl } from "#core/users.ts";

export const ADMIN_SECRET = "a secret of at least thirty-two bytes";
const LISTENER = "edge";
const AT_MS = 1_785_312_000_000;

export class MemoryUsers implements UsersControl {
  readonly #users = new Map<string, UserDetailView>();
  readonly waiting = null;
  #revision = 1;
  #made = 0;

  constructor(names: readonly string[] = ["alice"]) {
    for (const name of names) this.#add({ inbound: LISTENER, name, revision: 1 });
  }

  readonly admin: UserAdmin = {
    secret: ADMIN_SECRET,
    rollback: null,
    fleet: null,
    formerSubscription: () => null,
    protocols: () => [
      { type: "vless", label: "VLESS", credential: "uuid", network: "tcp", isAdditional: false },
    ],
    inbounds: () => {
      const [userCount, revision] = [this.#users.size, this.#revision];
      const counts = { userCount, enabledUserCount: userCount, revision, appliedRevision: revision };
      return [{ tag: LISTENER, type: "vless", credential: "uuid", hasFlow: true, ...counts }];
    },
    users: (inbound) =>
      [...this.#users.values()].filter((user) => inbound === null || user.inbound === inbound),
    user: (id) => this.#users.get(id) ?? null,
    usage: (id) =>
      this.#users.has(id)
        ? {
            stepSeconds: 300,
            steps: [{ startSeconds: AT_MS / 1000, uploadBytes: 1, downloadBytes: 2 }],
          }
        : null,
    history: (id) => {
      const steps = [{ startSeconds: AT_MS / 1000, uploadBytes: 1, downloadBytes: 2 }];
      return this.#users.has(id) ? { inbound: LISTENER, removedAtMs: null, days: steps, hours: steps } : null;
    },
    limitKinds: () => ({ quota: false, expiration: false }),
    create: async (draft) => {
      if (draft.inbound !== LISTENER) throw new ApiError(404, "no such listener");
      this.#next(draft.revision);
      return this.#add(draft);
    },
    update: async (id, change) => {
      const user = this.#changed(id, change.revision);
      const { name = user.name, flow = user.flow, enabled = user.enabled }: Partial<UserChange> = change;
      return this.#put({ ...user, name, flow, enabled });
    },
    remove: async (id, revision) => {
      this.#changed(id, revision);
      this.#users.delete(id);
    },
    resetTraffic: async (id, revision) =>
      this.#put({ ...this.#changed(id, revision), uploadBytes: 0, downloadBytes: 0 }),
    rotateSubscription: async (id, revision) => {
      this.#changed(id, revision);
      return { revision: this.#revision, subscriptionUrl: `/sub/svc/${id}-${this.#revision}` };
    },
    subscription: (token) =>
      token === "1"
        ? {
            url: "https://proxy.example.com/sub/svc/1",
            link: "vless://x@127.0.0.1:443",
            status: "active",
            node: { name: "edge - alice", type: "vless", server: "127.0.0.1", port: 443, uuid: "x" },
            mihomo: { name: "edge - alice", type: "vless", server: "127.0.0.1", port: 443, uuid: "x" },
            singBox: null,
            byAgent: false,
            title: "edge - alice",
            uploadBytes: 1,
            downloadBytes: 2,
            totalBytes: 0,
            expiresAtMs: null,
          }
        : null,
  };

  #add({ inbound, name, flow = "", enabled = true }: UserDraft): UserDetailView {
    const counters = { uploadBytes: 1, downloadBytes: 2, trafficGeneration: 1, activeConnections: 0 };
    return this.#put({
      id: String(++this.#made),
      inbound,
      type: "vless",
      name,
      flow,
      enabled,
      ...counters,
      createdAtMs: AT_MS,
      updatedAtMs: AT_MS,
      revision: this.#revision,
      appliedRevision: this.#revision,
      credentialKind: "uuid",
      credential: "11111111-2222-4333-8444-555555555555",
      subscriptionUrl: null,
      status: "active",
      remarks: NO_REMARKS,
      limits: NO_LIMITS,
      quota: null,
      online: [],
    });
  }

  #put(user: UserDetailView): UserDetailView {
    this.#users.set(user.id, user);
    return user;
  }

  #changed(id: string, revision: number): UserDetailView {
    const user = this.#users.get(id);
    if (user === undefined) throw new ApiError(404, "Resource not found");
    this.#next(revision);
    return user;
  }

  #next(revision: number): void {
    if (revision !== this.#revision) throw new ApiError(409, `revision ${revision} is not ${this.#revision}`);
    this.#revision++;
  }
}
