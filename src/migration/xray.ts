/** A configuration of Xray: inbounds with their clients, and the rules. */
import type { Protocol } from "#core/protocol.ts";
import { NO_LIMITS } from "#users/limits.ts";
import { shown, type Imported, type ImportedListener, type LeftOut } from "./imported.ts";
import { objectsOf, textOf, type Json } from "./json.ts";
import { clientsOf, listenerOf, xrayInbound } from "./xray-inbound.ts";
import { routingOf } from "./xray-routing.ts";

interface Source {
  readonly protocols: readonly Protocol[];
  readonly report: LeftOut;
  readonly nowMs: number;
}

export function readXray(xray: Json, { protocols, report, nowMs }: Source): Imported {
  const listeners = objectsOf(xray["inbounds"]).flatMap(([at, item]): ImportedListener[] => {
    const where = `inbounds[${at}]`;
    const inbound = xrayInbound(item, where, `inbound-${at}`);
    const listener = listenerOf(inbound, protocols, report);
    if (listener === null) return [];
    const { member, clients } = clientsOf(inbound);
    const users = clients.map(([number, client]) => {
      const name = textOf(client["email"]) || textOf(client["user"]) || `user-${number + 1}`;
      return {
        where: `${where}.settings.${member}[${number}] (${shown(name)})`,
        name,
        credential: textOf(client["id"]) || textOf(client["password"]) || textOf(client["pass"]),
        flow: textOf(client["flow"]),
        enabled: true,
        uploadBytes: 0,
        downloadBytes: 0,
        createdAtMs: nowMs,
        limits: NO_LIMITS,
        usage: null,
      };
    });
    return [{ ...listener, users }];
  });
  return { listeners, ...routingOf(xray, "", { protocols, report }) };
}
