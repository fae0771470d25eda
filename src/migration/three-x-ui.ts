/**
 * The database of 3x-ui (internal/database/model/model.go there): inbounds hold their clients as JSON, `client_traffics`
 * has what each used, found by its email.
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
import { countOf, objectOf, parseObject, textOf, wholeOf, type Json } from "./json.ts";
import { rowsOf } from "./sqlite.ts";
import { userLimits } from "./user-limits.ts";
import { clientsOf, listenerOf, xrayInbound } from "./xray-inbound.ts";
import { routingOf } from "./xray-routing.ts";

interface Source {
  readonly protocols: readonly Protocol[];
  readonly report: LeftOut;
  readonly nowMs: number;
}

/** Throws `ConfigError` where a table cannot be read. */
export function readThreeXUi(database: DatabaseSync, source: Source): Imported {
  const traffic = new Map(rowsOf(database, "client_traffics").map((row) => [textOf(row["email"]), row]));
  const listeners = rowsOf(database, "inbounds").flatMap((row) => {
    const listener = readInbound(row, traffic, source);
    return listener === null ? [] : [listener];
  });
  const settings = new Map(
    rowsOf(database, "settings").map(({ key, value }) => [textOf(key), textOf(value)]),
  );
  return { listeners, ...readRouting(settings, source), former: formerOf(settings, source.report) };
}

/** Where the panel's template was never changed it is not stored: it refuses private addresses and BitTorrent. */
const DEFAULT_TEMPLATE = {
  outbounds: [
    { tag: "direct", protocol: "freedom" },
    { tag: "blocked", protocol: "blackhole" },
  ],
  routing: {
    rules: [
      { outboundTag: "blocked", ip: ["geoip:private"] },
      { outboundTag: "blocked", protocol: ["bittorrent"] },
    ],
  },
};

function readRouting(
  settings: ReadonlyMap<string, string>,
  source: Source,
): Pick<Imported, "rules" | "keys"> {
  const text = settings.get("xrayTemplateConfig");
  const where = "settings[xrayTemplateConfig]";
  try {
    const template = text === undefined ? DEFAULT_TEMPLATE : parseObject(text, where);
    return routingOf(template, `${where}.`, source);
  } catch (error) {
    source.report.add(where, `${messageOf(error)}; whatever it allows is refused`);
    return { rules: ["MATCH,REJECT"] };
  }
}

/** What the panel has where nothing is stored (internal/web/service/setting.go there). */
const FORMER = { subPath: "/sub/", subClashPath: "/clash/" };

function formerOf(settings: ReadonlyMap<string, string>, report: LeftOut): FormerSubscriptions {
  if (settings.get("subJsonEnable") === "true")
    report.add("settings[subJsonPath]", "subscriptions in the form of Xray's configuration are not made");
  const prefix = (key: keyof typeof FORMER): string =>
    `/${settings.get(key) ?? FORMER[key]}/`.replaceAll(/\/{2,}/g, "/");
  return {
    paths: [
      { prefix: prefix("subPath"), format: "" },
      ...(settings.get("subClashEnable") === "true"
        ? [{ prefix: prefix("subClashPath"), format: "mihomo" as const }]
        : []),
    ],
  };
}

function readInbound(row: Json, traffic: ReadonlyMap<string, Json>, source: Source): ImportedListener | null {
  const { report, protocols, nowMs } = source;
  const where = `inbounds[id=${textOf(row["id"])}]`;
  const reason = reasonToLeave(row, nowMs);
  if (reason !== null) {
    report.add(where, `${reason}; the listener and its users are left out`);
    return null;
  }
  const documents = { settings: {}, streamSettings: {}, sniffing: {} };
  try {
    const read = (column: string) => parseObject(textOf(row[column]) || "{}", `${where}.${column}`);
    documents.settings = read("settings");
    documents.streamSettings = read("stream_settings");
    documents.sniffing = read("sniffing");
  } catch (error) {
    report.add(where, `${messageOf(error)}; the listener and its users are left out`);
    return null;
  }
  const inbound = xrayInbound({ ...row, ...documents }, where, `inbound-${textOf(row["id"])}`);
  const listener = listenerOf(inbound, protocols, report);
  if (listener === null) return null;
  if (countOf(row["total"]) > 0) report.add(`${where}.total`, "a quota of all users together is not taken");
  if (countOf(row["expiry_time"]) > 0)
    report.add(`${where}.expiry_time`, "an end of the listener is not taken");
  const { member, clients } = clientsOf(inbound);
  const users = clients.map(([at, client]) => {
    const email = textOf(client["email"]) || textOf(client["user"]);
    const place = `${where}.settings.${member}[${at}] (${shown(email)})`;
    return readClient(client, objectOf(traffic.get(email)), row, place, source);
  });
  return { ...listener, users };
}

/** Null: it is open and on this machine. */
function reasonToLeave(row: Json, nowMs: number): string | null {
  if (countOf(row["node_id"]) > 0) return "it is an inbound of another machine";
  if (wholeOf(row["enable"]) === 0) return "it is switched off";
  const end = countOf(row["expiry_time"]);
  if (end > 0 && end <= nowMs) return "its end has passed";
  const used = countOf(row["up"]) + countOf(row["down"]);
  return countOf(row["total"]) > 0 && used >= countOf(row["total"]) ? "its quota is used up" : null;
}

function readClient(client: Json, traffic: Json, inbound: Json, where: string, source: Source): ImportedUser {
  const { report, nowMs } = source;
  const uploadBytes = countOf(traffic["up"]);
  const downloadBytes = countOf(traffic["down"]);
  const totalBytes = countOf(traffic["total"] ?? client["totalGB"]); // bytes, whatever the name says
  const schedule = { totalBytes, period: periodOf(client, inbound) };
  const panel = {
    totalBytes,
    cycle: cycleOf(schedule, where, report),
    expiresAtMs: endOf(wholeOf(traffic["expiry_time"] ?? client["expiryTime"]), where, source),
    ips: countOf(client["limitIp"]),
    uploadBytes,
    downloadBytes,
  };
  if (countOf(client["reset"]) > 0 || countOf(client["resetDay"]) > 0)
    report.add(where, "its end is not moved on by itself (reset, resetDay)");
  if (countOf(client["limitHwid"]) > 0) report.add(where, "devices are not counted (limitHwid)");
  return {
    where,
    name: textOf(client["email"]) || textOf(client["user"]),
    credential: textOf(client["id"]) || textOf(client["password"]) || textOf(client["pass"]),
    flow: textOf(client["flow"]),
    enabled: client["enable"] !== false && traffic["enable"] !== 0n,
    uploadBytes,
    downloadBytes,
    createdAtMs: countOf(client["created_at"]) || nowMs,
    ...userLimits(panel, nowMs),
    subscription: textOf(client["subId"]),
  };
}

/** The client's own schedule comes before that of its inbound. */
function periodOf(client: Json, inbound: Json): { readonly name: string; readonly day: number } {
  const own = textOf(client["trafficReset"]);
  if (own !== "" && own !== "never") return { name: own, day: countOf(client["trafficResetDay"]) };
  return { name: textOf(inbound["traffic_reset"]), day: countOf(inbound["traffic_reset_day"]) };
}

const CYCLES: Readonly<Record<string, QuotaCycle>> = { daily: "day", weekly: "week", monthly: "month" };

function cycleOf(
  { totalBytes, period }: { readonly totalBytes: number; readonly period: ReturnType<typeof periodOf> },
  where: string,
  report: LeftOut,
): QuotaCycle | null {
  if (totalBytes === 0 || period.name === "" || period.name === "never") return null;
  const cycle = CYCLES[period.name] ?? null;
  if (cycle === null) report.add(where, `a quota that begins anew ${shown(period.name)} lasts for ever here`);
  else if (cycle === "month" && period.day > 1)
    report.add(where, `its quota begins anew on the first of the month, not on day ${period.day}`);
  return cycle;
}

/** Below zero: so many ms from the user's first connection on. */
function endOf(expiry: number, where: string, { report, nowMs }: Source): number {
  if (expiry >= 0) return expiry;
  report.add(where, "its time begins now, not with its first connection");
  return nowMs - expiry;
}
