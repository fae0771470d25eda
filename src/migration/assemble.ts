/** From what was read to a configuration and the document that `weir users import` takes. */
import { randomBytes, randomUUID } from "node:crypto";
import type { Protocol, UserSupport } from "#core/protocol.ts";
import { limitsJson } from "#users/stored-limits.ts";
import { newToken } from "#users/tokens.ts";
import { shown, type Imported, type ImportedListener, type ImportedUser, type LeftOut } from "./imported.ts";
import { FormerTable } from "./former.ts";
import { listOf, type Json } from "./json.ts";

export interface AssembleOptions {
  readonly protocols: readonly Protocol[];
  readonly report: LeftOut;
  /** `svc.public-base-url`. */
  readonly publicBaseUrl: string;
  /** `svc.store`. */
  readonly store: string;
  /** `svc.former-subscriptions`. */
  readonly formerFile: string;
  readonly nowMs: number;
}

export interface Assembled {
  readonly configuration: Json;
  /** Null: there are no managed users. */
  readonly document: Json | null;
  readonly listeners: number;
  readonly nodes: number;
  /** Where subscriptions of before lead; null: there were none. */
  readonly former: Json | null;
  /** Of managed listeners, and of others. */
  readonly managedUsers: number;
  readonly fixedUsers: number;
}

export function assemble(imported: Imported, options: AssembleOptions): Assembled {
  const { listeners, rules, keys = {} } = imported;
  const { protocols, report, publicBaseUrl, store, nowMs } = options;
  const items: Json[] = [];
  const books: Record<string, Json> = {};
  const subscriptions: Record<string, string> = {};
  const former = new FormerTable();
  let managedUsers = 0;
  let fixedUsers = 0;
  for (const source of withOwnNames(listeners, report)) {
    const { name, type } = source;
    const support = protocols.find((one) => one.type === type)?.users;
    if (support === undefined) {
      const users = fixed(source, report, nowMs);
      const hasOnePassword = type === "shadowsocks" && "password" in source.keys;
      const isOpen = (source.isOpen === true || hasOnePassword) && source.users.length === 0;
      if (isOpen) {
        items.push({ name, type, ...source.keys });
        continue;
      }
      if (users.length === 0) {
        report.add(source.where, "it has no user who may come in; the listener is left out");
        continue;
      }
      fixedUsers += users.length;
      items.push({ name, type, ...source.keys, users });
      continue;
    }
    const users = managed(source, support, report);
    for (const user of users) {
      const token = newToken();
      subscriptions[user.id] = token;
      former.add(user.subscription, token);
    }
    managedUsers += users.length;
    items.push({ name, type, ...source.keys, users: [] });
    const stored = users.map(({ json }) => json);
    books[name] = { id: randomUUID(), name, protocol: type, revision: 1, applied_revision: 0, users: stored };
  }
  const table = former.table(imported.former);
  const svc = {
    secret: randomBytes(32).toString("base64url"),
    "public-base-url": publicBaseUrl,
    store,
    "managed-listeners": Object.keys(books),
    ...(table === null ? {} : { "former-subscriptions": options.formerFile }),
  };
  return {
    configuration: {
      "external-controller": "127.0.0.1:9090",
      secret: randomBytes(24).toString("base64url"),
      ...(Object.keys(books).length === 0 ? {} : { svc }),
      ...keys,
      ...(items.length === 0 ? {} : { listeners: items }),
      rules,
    },
    document: Object.keys(books).length === 0 ? null : { version: 1, listeners: books, subscriptions },
    listeners: items.length,
    nodes: listOf(keys["proxies"]).length,
    former: table,
    managedUsers,
    fixedUsers,
  };
}

/** The second listener of a name gets a number. */
function withOwnNames(sources: readonly ImportedListener[], report: LeftOut): readonly ImportedListener[] {
  const taken = new Set<string>();
  return sources.map((source) => {
    let name = source.name;
    for (let number = 2; taken.has(name); number++) name = `${source.name}-${number}`;
    taken.add(name);
    if (name !== source.name) report.add(source.where, `its name is taken; it is called ${shown(name)}`);
    return { ...source, name };
  });
}

interface ManagedUser {
  readonly id: string;
  readonly json: Json;
  readonly subscription: string;
}

/** Each with a credential and a name that no other user of the listener has: others the state file would refuse. */
function managed(source: ImportedListener, support: UserSupport, report: LeftOut): readonly ManagedUser[] {
  const names = new Set<string>();
  const identities = new Set<string>();
  return source.users.flatMap((user) => {
    const credential = credentialOf(user, support);
    const identity = support.identify(credential);
    const leave = (why: string): readonly ManagedUser[] => {
      report.add(user.where, `${why}; the user is left out`);
      return [];
    };
    if (identity === null) return leave(`there is no valid ${support.credential}`);
    if (user.name.trim() === "" || !user.name.isWellFormed()) return leave("there is no name");
    if (identities.has(identity)) return leave("another user of the listener has the same credential");
    if (names.has(user.name.trim().toLowerCase()))
      return leave("another user of the listener has the same name");
    const flow = flowOf(user, support, report);
    names.add(user.name.trim().toLowerCase());
    identities.add(identity);
    const id = randomUUID();
    const json = { id, ...userJson(user, flow), [support.credential]: credential };
    return [{ id, json, subscription: user.subscription ?? "" }];
  });
}

/** Xray makes a UUID of other texts, and so does the listener. */
function credentialOf({ credential }: ImportedUser, support: UserSupport): string {
  return support.identify(credential) === null ? (support.derive?.(credential) ?? credential) : credential;
}

/** What follows a flow's name (`-udp443`) is a matter of clients. */
function flowOf(user: ImportedUser, support: UserSupport, report: LeftOut): string {
  const flow = support.flows.find((one) => user.flow.startsWith(one)) ?? "";
  if (flow === "" && user.flow !== "") report.add(user.where, `the flow ${shown(user.flow)} is not spoken`);
  return flow;
}

function userJson(user: ImportedUser, flow: string) {
  return {
    name: user.name.trim(),
    ...(flow === "" ? {} : { flow }),
    enabled: user.enabled,
    upload_bytes: user.uploadBytes,
    download_bytes: user.downloadBytes,
    traffic_generation: 1,
    created_at: user.createdAtMs,
    updated_at: user.createdAtMs,
    ...limitsJson(user.limits, user.usage),
  };
}

/** Users of the file itself: who may not come in now must not come in here, because nothing would keep them out. */
function fixed(source: ImportedListener, report: LeftOut, nowMs: number): readonly Json[] {
  return source.users.flatMap((user) => {
    const reason = barOf(user, nowMs);
    if (reason !== null) {
      report.add(
        user.where,
        `${reason}; the user is left out, because users of ${source.type} have no limits`,
      );
      return [];
    }
    const { quota, expiresAtMs, ips } = user.limits;
    const lost = [
      quota === null ? "" : "quota",
      expiresAtMs === null ? "" : "end",
      ips === 0 ? "" : "addresses",
    ];
    const names = lost.filter((one) => one !== "").join(", ");
    if (names !== "") report.add(user.where, `users of ${source.type} have no limits: ${names} is not taken`);
    return [{ username: user.name, [source.credential]: user.credential }];
  });
}

function barOf({ enabled, limits, uploadBytes, downloadBytes }: ImportedUser, nowMs: number): string | null {
  if (!enabled) return "it is switched off";
  if (limits.expiresAtMs !== null && limits.expiresAtMs <= nowMs) return "its end has passed";
  const isUsedUp = limits.quota !== null && uploadBytes + downloadBytes >= limits.quota.totalBytes;
  return isUsedUp ? "its quota is used up" : null;
}
