/** An inbound of Xray (infra/conf/xray.go) as a listener without users; they come from where their program keeps them. */
import type { Protocol } from "#core/protocol.ts";
import { shown, type ImportedListener, type LeftOut } from "./imported.ts";
import { countOf, listOf, objectOf, objectsOf, textOf, type Json } from "./json.ts";
import { streamKeys } from "./xray-stream.ts";

/** An inbound as its parts, whether they stood in one document or in columns. */
export interface XrayInbound {
  readonly where: string;
  readonly name: string;
  readonly protocol: string;
  readonly listen: string;
  readonly port: string;
  readonly settings: Json;
  readonly stream: Json;
  readonly sniffing: Json;
}

export function xrayInbound(item: Json, where: string, name: string): XrayInbound {
  return {
    where,
    name: textOf(item["tag"]) || name,
    protocol: textOf(item["protocol"]).toLowerCase(),
    listen: textOf(item["listen"]),
    port: textOf(item["port"]),
    settings: objectOf(item["settings"]),
    stream: objectOf(item["streamSettings"]),
    sniffing: objectOf(item["sniffing"]),
  };
}

/** The accounts of an inbound, with the name of the list that they stand in. */
export function clientsOf({ settings }: XrayInbound): {
  readonly member: string;
  readonly clients: readonly (readonly [at: number, client: Json])[];
} {
  const member =
    ["clients", "users", "accounts"].find((one) => listOf(settings[one]).length > 0) ?? "clients";
  return { member, clients: objectsOf(settings[member]) };
}

/** Null where there is no such listener; the report says why. */
export function listenerOf(
  inbound: XrayInbound,
  protocols: readonly Protocol[],
  report: LeftOut,
): Omit<ImportedListener, "users"> | null {
  const { where, name, protocol: type, listen, port, settings, stream, sniffing } = inbound;
  const refuse = (at: string, why: string): null => {
    report.add(`${where}.${at}`, `${why}; the listener is left out`);
    return null;
  };
  const protocol = protocols.find((one) => one.type === type && one.inbound !== undefined);
  const isSpoken = protocol !== undefined && protocol.type !== "tunnel";
  if (!isSpoken) return refuse("protocol", `there is no listener like ${shown(type) || "this"}`);
  if (!/^[\d\s,-]+$/.test(port)) return refuse("port", "expected a port");
  if (/^[/@]/.test(listen)) return refuse("listen", "listeners have addresses, no Unix sockets");
  const carrier = streamKeys(stream, `${where}.streamSettings`, report);
  if (carrier === null) return null;
  if (sniffing["enabled"] === true)
    report.add(`${where}.sniffing`, "sniffing is switched on for all listeners together: sniffer.enable");
  if (listOf(settings["fallbacks"]).length > 0)
    report.add(`${where}.settings.fallbacks`, "fallbacks of clients without a credential are not taken");
  const { "allow-insecure": insecure, ...secured } = carrier;
  const knowsInsecure = protocol.inbound !== undefined && "allow-insecure" in protocol.inbound.schema.shape;
  return {
    where,
    name,
    type,
    credential: clientsOf(inbound).clients.some(([, client]) => "id" in client) ? "uuid" : "password",
    keys: {
      ...(listen === "" ? {} : { listen }),
      port: /^\d+$/.test(port) ? countOf(port) : port,
      ...(insecure === true && knowsInsecure ? { "allow-insecure": true } : {}),
      ...secured,
      ...methodKeys(settings),
      ...decryptionKeys(settings),
    },
  };
}

/** Of Shadowsocks: what the server and its clients share. */
function methodKeys(settings: Json): Json {
  const [first] = objectsOf(settings["clients"]);
  const cipher = textOf(settings["method"]) || textOf(first?.[1]["method"]);
  if (cipher === "") return {};
  const password = textOf(settings["password"]);
  return { cipher, ...(password === "" ? {} : { password }), udp: textOf(settings["network"]) !== "tcp" };
}

function decryptionKeys(settings: Json): Json {
  const decryption = textOf(settings["decryption"]);
  return decryption === "" || decryption === "none" ? {} : { decryption };
}
