/** Inbounds of sing-box (option/inbound.go and the protocols beside it) as listeners with their users. */
import type { Protocol } from "#core/protocol.ts";
import { NO_LIMITS } from "#users/limits.ts";
import { shown, type ImportedListener, type ImportedUser, type LeftOut } from "./imported.ts";
import { countOf, objectOf, objectsOf, textOf, textsOf, type Json } from "./json.ts";

interface Source {
  readonly protocols: readonly Protocol[];
  readonly report: LeftOut;
  readonly nowMs: number;
}

/** Sing-box's names for what is called otherwise here. */
const TYPES: Readonly<Record<string, string>> = { redirect: "redir", ss: "shadowsocks" };
/** Those that any program on the machine may use without an account. */
const OPEN = new Set(["socks", "http", "mixed", "redir", "tproxy"]);

/** Null where there is no such listener; the report says why. */
export function listenerOf(
  inbound: Json,
  where: string,
  at: number,
  source: Source,
): ImportedListener | null {
  const { protocols, report } = source;
  const written = textOf(inbound["type"]);
  const type = TYPES[written] ?? written;
  const refuse = (member: string, why: string): null => {
    report.add(`${where}.${member}`, `${why}; the listener is left out`);
    return null;
  };
  const protocol = protocols.find((one) => one.type === type && one.inbound !== undefined);
  if (protocol === undefined || type === "tunnel" || type === "tun")
    return refuse("type", `there is no listener like ${shown(written) || "this"}`);
  const port = countOf(inbound["listen_port"]);
  if (port === 0) return refuse("listen_port", "there is no port");
  if (inbound["proxy_protocol"] === true)
    return refuse("proxy_protocol", "listeners do not take the PROXY protocol");
  const carrier = carrierKeys(objectOf(inbound["transport"]));
  if (carrier === null) return refuse("transport.type", "no listener of ours has the transport");
  const security = securityKeys(objectOf(inbound["tls"]), `${where}.tls`, report);
  if (security === null) return null;
  const knowsInsecure = protocol.inbound !== undefined && "allow-insecure" in protocol.inbound.schema.shape;
  const isPlain = Object.keys(security).length === 0 && knowsInsecure;
  if (objectOf(inbound["multiplex"])["enabled"] === true)
    report.add(`${where}.multiplex`, "is taken from clients without being switched on");
  const listen = textOf(inbound["listen"]);
  return {
    where,
    name: textOf(inbound["tag"]) || `inbound-${at}`,
    type,
    credential: objectsOf(inbound["users"]).some(([, user]) => "uuid" in user) ? "uuid" : "password",
    isOpen: OPEN.has(type),
    keys: {
      listen: listen === "" ? "0.0.0.0" : listen,
      port,
      ...(isPlain ? { "allow-insecure": true } : {}),
      ...security,
      ...carrier,
      ...ownKeys(type, inbound),
    },
    users: usersOf(inbound, type, where, source),
  };
}

function usersOf(inbound: Json, type: string, where: string, { nowMs }: Source): readonly ImportedUser[] {
  return objectsOf(inbound["users"]).map(([at, user]) => {
    const name = textOf(user["name"]) || textOf(user["username"]) || `user-${at + 1}`;
    const [uuid, password] = [textOf(user["uuid"]), textOf(user["password"])];
    return {
      where: `${where}.users[${at}] (${shown(name)})`,
      name,
      credential: type === "tuic" ? `${uuid}:${password}` : uuid || password,
      flow: textOf(user["flow"]),
      enabled: true,
      uploadBytes: 0,
      downloadBytes: 0,
      createdAtMs: nowMs,
      limits: NO_LIMITS,
      usage: null,
    };
  });
}

/** Keys that one protocol alone has. */
function ownKeys(type: string, inbound: Json): Json {
  const password = textOf(inbound["password"]);
  if (type === "shadowsocks")
    return {
      cipher: textOf(inbound["method"]),
      ...(password === "" ? {} : { password }),
      udp: textOf(inbound["network"]) !== "tcp",
    };
  if (type === "tuic") {
    const controller = textOf(inbound["congestion_control"]);
    return controller === "" ? {} : { "congestion-controller": controller };
  }
  if (type !== "hysteria2") return {};
  const obfs = objectOf(inbound["obfs"]);
  const rate = (member: string): string =>
    countOf(inbound[member]) > 0 ? `${countOf(inbound[member])} Mbps` : "";
  return {
    ...(textOf(obfs["type"]) === ""
      ? {}
      : { obfs: textOf(obfs["type"]), "obfs-password": textOf(obfs["password"]) }),
    ...(rate("up_mbps") === "" ? {} : { up: rate("up_mbps") }),
    ...(rate("down_mbps") === "" ? {} : { down: rate("down_mbps") }),
    ...(typeof inbound["masquerade"] === "string" ? { masquerade: inbound["masquerade"] } : {}),
  };
}

function carrierKeys(transport: Json): Json | null {
  const type = textOf(transport["type"]);
  if (type === "") return {};
  if (type === "ws" || type === "httpupgrade") return { "ws-path": textOf(transport["path"]) || "/" };
  return type === "grpc" ? { "grpc-service-name": textOf(transport["service_name"]) || "TunService" } : null;
}

/** Empty: the connection is plain. */
function securityKeys(tls: Json, where: string, report: LeftOut): Json | null {
  if (tls["enabled"] !== true) return {};
  const reality = objectOf(tls["reality"]);
  if (reality["enabled"] === true) {
    const handshake = objectOf(reality["handshake"]);
    return {
      "reality-config": {
        dest: `${textOf(handshake["server"])}:${countOf(handshake["server_port"]) || 443}`,
        "server-names": textsOf(tls["server_name"]),
        "private-key": textOf(reality["private_key"]),
        "short-id": textsOf(reality["short_id"]),
      },
    };
  }
  const certificate = pemOf(tls, "certificate");
  const key = pemOf(tls, "key");
  if (certificate === "" || key === "") {
    report.add(where, "there is no certificate with its key (ACME is not taken); the listener is left out");
    return null;
  }
  for (const member of ["min_version", "max_version", "cipher_suites", "client_authentication", "ech"])
    if (tls[member] !== undefined) report.add(`${where}.${member}`, "is not taken");
  return { certificate, "private-key": key };
}

/** Lines of PEM stand in the file; else there is a path. */
function pemOf(tls: Json, member: "certificate" | "key"): string {
  const lines = textsOf(tls[member]);
  return lines.length > 0 ? `${lines.join("\n")}\n` : textOf(tls[`${member}_path`]);
}
