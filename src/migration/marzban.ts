/**
 * The database of Marzban (app/db/models.py there) with the Xray configuration beside it, which has the inbounds. A user
 * has one credential a protocol, for every inbound of the protocol that is not excluded.
 */
import type { DatabaseSync } from "node:sqlite";
import type { Protocol } from "#core/protocol.ts";
import type { QuotaCycle } from "#core/users.ts";
import { messageOf } from "#core/errors.ts";
import {
  shown,
  type FormerSubscriptions,
  type Imported,
  type ImportedListener,
  type ImportedUser,
  type LeftOut,
} from "./imported.ts";
import { countOf, objectsOf, parseObject, textOf, type Json } from "./json.ts";
import { rowsOf } from "./sqlite.ts";
import { userLimits } from "./user-limits.ts";
import { listenerOf, xrayInbound } from "./xray-inbound.ts";
import { routingOf } from "./xray-routing.ts";

interface Source {
  /** `XRAY_SUBSCRIPTION_PATH` of its environment. */
  readonly subPath: string;
  /** Of Xray, as Marzban starts it. */
  readonly xray: Json;
  readonly protocols: readonly Protocol[];
  readonly report: LeftOut;
  readonly nowMs: number;
}

/** A user's account for one protocol. */
interface Account {
  readonly user: ImportedUser;
  readonly excluded: ReadonlySet<string>;
  readonly method: string;
}

/** Throws `ConfigError` where a table cannot be read. */
export function readMarzban(database: DatabaseSync, source: Source): Imported {
  const { xray, protocols, report } = source;
  const accounts = readAccounts(database, source);
  const places = new Map<string, string[]>();
  const listeners = objectsOf(xray["inbounds"]).flatMap(([at, item]): ImportedListener[] => {
    const inbound = xrayInbound(item, `xray.inbounds[${at}]`, `inbound-${at}`);
    const ofProtocol = accounts.get(inbound.protocol) ?? [];
    const method = ofProtocol[0]?.method ?? "";
    const settings = method === "" ? inbound.settings : { ...inbound.settings, method };
    const listener = listenerOf({ ...inbound, settings }, protocols, report);
    if (listener === null) return [];
    const own = ofProtocol.filter(({ excluded }) => !excluded.has(inbound.name));
    for (const one of own)
      if (one.method !== method)
        report.add(one.user.where, `its method is another than the listener's (${shown(method)}); left out`);
    const users = own.filter((one) => one.method === method).map(({ user }) => user);
    for (const { name } of users) places.set(name, [...(places.get(name) ?? []), listener.name]);
    return [{ ...listener, credential: CREDENTIALS[inbound.protocol] ?? "uuid", users }];
  });
  for (const [name, at] of places)
    if (at.length > 1)
      report.add(`users (${shown(name)})`, `is a user of ${at.join(", ")}, and each counts and limits alone`);
  const former = formerOf(database, source);
  return {
    listeners,
    ...routingOf(xray, "xray.", { protocols, report }),
    ...(former === null ? {} : { former }),
  };
}

/** Of the others it is a UUID. */
const CREDENTIALS: Readonly<Record<string, "password">> = { trojan: "password", shadowsocks: "password" };

/** By protocol, as Xray writes its name. */
function readAccounts(database: DatabaseSync, source: Source): ReadonlyMap<string, readonly Account[]> {
  const users = new Map(rowsOf(database, "users").map((row) => [textOf(row["id"]), row]));
  const excluded = Map.groupBy(rowsOf(database, "exclude_inbounds_association"), (row) =>
    textOf(row["proxy_id"]),
  );
  const accounts = new Map<string, Account[]>();
  const limits = new Map([...users].map(([id, row]) => [id, limitsOf(row, source)]));
  for (const proxy of rowsOf(database, "proxies")) {
    const id = textOf(proxy["user_id"]);
    const row = users.get(id);
    const shared = limits.get(id);
    const protocol = textOf(proxy["type"]).toLowerCase();
    if (row === undefined || shared === undefined) continue;
    const where = `proxies[id=${textOf(proxy["id"])}] (${shown(textOf(row["username"]))})`;
    try {
      const settings = parseObject(textOf(proxy["settings"]), where);
      const tags = (excluded.get(textOf(proxy["id"])) ?? []).map((one) => textOf(one["inbound_tag"]));
      const user: ImportedUser = {
        where,
        name: textOf(row["username"]),
        credential: textOf(settings["id"]) || textOf(settings["password"]),
        flow: textOf(settings["flow"]),
        ...shared,
        subscription: textOf(row["username"]),
      };
      const account = { user, excluded: new Set(tags), method: textOf(settings["method"]) };
      const known = accounts.get(protocol);
      if (known === undefined) accounts.set(protocol, [account]);
      else known.push(account);
    } catch (error) {
      source.report.add(where, `${messageOf(error)}; the user is left out`);
    }
  }
  return accounts;
}

/** Names are signed there: a table cannot hold all that were given out, so it holds what they are checked by. */
function formerOf(database: DatabaseSync, { report, subPath }: Source): FormerSubscriptions | null {
  const secret = textOf(rowsOf(database, "jwt")[0]?.["secret_key"]);
  if (secret === "") {
    report.add("jwt", "there is no key that addresses of subscriptions were signed with: users get new ones");
    return null;
  }
  const since = new Map(
    rowsOf(database, "users").map((row) => {
      const created = instantOf(textOf(row["created_at"]));
      return [textOf(row["username"]), Math.max(created, instantOf(textOf(row["sub_revoked_at"])))] as const;
    }),
  );
  const prefix = `/${subPath}/`.replaceAll(/\/{2,}/g, "/");
  return { paths: [{ prefix, format: "" }], signed: { secret, since } };
}

/** Unix ms of a time that is written in UTC, in whole seconds as the signed ones are; 0: it is none. */
function instantOf(text: string): number {
  const ms = Date.parse(`${text.replace(" ", "T")}Z`);
  return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000) * 1000;
}

const CYCLES: Readonly<Record<string, QuotaCycle>> = { day: "day", week: "week", month: "month" };

function limitsOf(row: Json, { report, nowMs }: Source) {
  const where = `users[id=${textOf(row["id"])}] (${shown(textOf(row["username"]))})`;
  const reset = textOf(row["data_limit_reset_strategy"]);
  const totalBytes = countOf(row["data_limit"]);
  const cycle = CYCLES[reset] ?? null;
  if (totalBytes > 0 && cycle !== null)
    report.add(where, `its quota begins anew with each ${cycle} of the calendar, in UTC`);
  if (totalBytes > 0 && reset === "year") report.add(where, "a quota of a year lasts for ever here");
  const waits = textOf(row["status"]) === "on_hold";
  const hold = countOf(row["on_hold_expire_duration"]);
  if (waits) report.add(where, "its time begins now, not with its first connection");
  const used = countOf(row["used_traffic"]); // both directions in one number; counted as downloads
  const panel = {
    totalBytes,
    cycle,
    expiresAtMs: waits && hold > 0 ? nowMs + hold * 1000 : countOf(row["expire"]) * 1000,
    ips: 0,
    uploadBytes: 0,
    downloadBytes: used,
  };
  return {
    enabled: textOf(row["status"]) !== "disabled",
    uploadBytes: 0,
    downloadBytes: used,
    createdAtMs: instantOf(textOf(row["created_at"])) || nowMs,
    ...userLimits(panel, nowMs),
  };
}
