/** `streamSettings` of an Xray inbound (infra/conf/transport_internet.go) as keys of a listener. */
import { shown, type LeftOut } from "./imported.ts";
import { countOf, objectOf, objectsOf, textOf, textsOf, type Json } from "./json.ts";

/** Null: no listener of ours would understand the clients; the report says why. */
export function streamKeys(stream: Json, where: string, report: LeftOut): Json | null {
  const carrier = carrierKeys(stream, where, report);
  const security = securityKeys(stream, where, report);
  if (Object.keys(objectOf(stream["sockopt"])).length > 0)
    report.add(`${where}.sockopt`, "options of sockets are not taken");
  return carrier === null || security === null
    ? null
    : { ...carrier, ...security, ...alpnKeys(stream, carrier) };
}

/** A server whose only `alpn` is h3 serves XHTTP over UDP alone. */
function alpnKeys(stream: Json, carrier: Json): Json {
  const [first, ...others] = textsOf(objectOf(stream["tlsSettings"])["alpn"]);
  const isHttp3 = first === "h3" && others.length === 0 && "xhttp-config" in carrier;
  return isHttp3 && textOf(stream["security"]).toLowerCase() === "tls" ? { alpn: ["h3"] } : {};
}

function carrierKeys(stream: Json, where: string, report: LeftOut): Json | null {
  const network = textOf(stream["network"] ?? stream["method"]).toLowerCase() || "tcp";
  const read = CARRIERS[network];
  const refuse = (at: string, why: string): null => {
    report.add(`${where}.${at}`, `${why}; the listener is left out`);
    return null;
  };
  if (read === undefined) return refuse("network", `${shown(network)} is no transport of our listeners`);
  const member = read.members.find((name) => name in stream) ?? "";
  const settings = objectOf(stream[member]);
  if (settings["acceptProxyProtocol"] === true || objectOf(stream["sockopt"])["acceptProxyProtocol"] === true)
    return refuse(`${member || "sockopt"}.acceptProxyProtocol`, "listeners do not take the PROXY protocol");
  const header = textOf(objectOf(settings["header"])["type"]);
  if (header !== "" && header !== "none")
    return refuse(`${member}.header`, `the disguise ${shown(header)} is not spoken`);
  return read.keys(settings);
}

interface Carrier {
  readonly members: readonly string[];
  keys(settings: Json): Json;
}

const webSocket = (settings: Json): Json => ({ "ws-path": textOf(settings["path"]) || "/" });
const bare: Carrier = { members: ["tcpSettings", "rawSettings"], keys: () => ({}) };
const xhttp: Carrier = {
  members: ["xhttpSettings", "splithttpSettings"],
  keys: (settings) => ({
    "xhttp-config": {
      path: textOf(settings["path"]) || "/",
      host: textOf(settings["host"]),
      mode: textOf(settings["mode"]),
    },
  }),
};

const CARRIERS: Readonly<Record<string, Carrier>> = {
  tcp: bare,
  raw: bare,
  ws: { members: ["wsSettings"], keys: webSocket },
  websocket: { members: ["wsSettings"], keys: webSocket },
  httpupgrade: { members: ["httpupgradeSettings"], keys: webSocket },
  grpc: {
    members: ["grpcSettings"],
    keys: (settings) => ({ "grpc-service-name": textOf(settings["serviceName"]) || "GunService" }),
  },
  xhttp,
  splithttp: xhttp,
};

function securityKeys(stream: Json, where: string, report: LeftOut): Json | null {
  const security = textOf(stream["security"]).toLowerCase();
  if (security === "" || security === "none") return { "allow-insecure": true };
  if (security === "reality") return realityKeys(objectOf(stream["realitySettings"]), where, report);
  if (security === "tls") return tlsKeys(objectOf(stream["tlsSettings"]), `${where}.tlsSettings`, report);
  report.add(`${where}.security`, `${shown(security)} is not spoken; the listener is left out`);
  return null;
}

function tlsKeys(tls: Json, where: string, report: LeftOut): Json | null {
  const [first, ...others] = objectsOf(tls["certificates"]).map(([, item]) => item);
  const certificate = pemOf(first, "certificate");
  const key = pemOf(first, "key");
  if (certificate === "" || key === "") {
    report.add(`${where}.certificates`, "there is no certificate with its key; the listener is left out");
    return null;
  }
  if (others.length > 0) report.add(`${where}.certificates`, "only the first certificate is taken");
  for (const member of ["minVersion", "maxVersion", "cipherSuites", "rejectUnknownSni", "echServerKeys"])
    if (tls[member] !== undefined && tls[member] !== "" && tls[member] !== false)
      report.add(`${where}.${member}`, "is not taken");
  return { certificate, "private-key": key };
}

/** Lines of PEM stand in the file as a list; else there is a path. */
function pemOf(item: Json | undefined, member: "certificate" | "key"): string {
  const lines = textsOf(item?.[member]);
  return lines.length > 0 ? `${lines.join("\n")}\n` : textOf(item?.[`${member}File`]);
}

function realityKeys(reality: Json, where: string, report: LeftOut): Json {
  for (const member of ["minClientVer", "maxClientVer"])
    if (textOf(reality[member]) !== "")
      report.add(`${where}.realitySettings.${member}`, "versions of clients are not checked");
  return {
    "reality-config": {
      dest: destinationOf(textOf(reality["target"] ?? reality["dest"])),
      "server-names": textsOf(reality["serverNames"]),
      "private-key": textOf(reality["privateKey"]),
      "short-id": textsOf(reality["shortIds"]),
      "max-time-difference": countOf(reality["maxTimeDiff"]),
      xver: countOf(reality["xver"]),
      "mldsa65-seed": textOf(reality["mldsa65Seed"]),
      ...limitKeys(reality, "limitFallbackUpload", "limit-fallback-upload"),
      ...limitKeys(reality, "limitFallbackDownload", "limit-fallback-download"),
    },
  };
}

/** A port alone is one of this machine. */
function destinationOf(target: string): string {
  return /^\d+$/.test(target) ? `127.0.0.1:${target}` : target;
}

function limitKeys(reality: Json, member: string, key: string): Json {
  const limit = objectOf(reality[member]);
  if (countOf(limit["bytesPerSec"]) === 0) return {};
  return {
    [key]: {
      "after-bytes": countOf(limit["afterBytes"]),
      "bytes-per-sec": countOf(limit["bytesPerSec"]),
      "burst-bytes-per-sec": countOf(limit["burstBytesPerSec"]),
    },
  };
}
