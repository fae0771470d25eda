/**
 * The text of a nameserver entry as data. It lives in `net` because both the configuration, which must refuse a bad
 * entry with its key, and the DNS engine need it, and neither may import the other.
 */
import type { NameserverOptions } from "#core/dns-options.ts";
import { ConfigError, UnusableError } from "#core/errors.ts";
import { suggestion } from "#lib/nearest-word.ts";
import type { IpPrefix } from "#core/session.ts";
import { parseCidr } from "#net/address/cidr.ts";
import { parseIp } from "#net/address/ip.ts";
import { itemAt } from "#lib/at.ts";

const PORTS = { udp: 53, tcp: 53, tls: 853, https: 443, http: 80, quic: 853 } as const;

/** Why servers cannot be asked over QUIC. */
export const NO_QUIC = "QUIC needs a runtime with node:ffi and OpenSSL 3.5 on Linux, and not relay: portable";

export const RCODE_NAMES = {
  success: 0,
  format_error: 1,
  server_failure: 2,
  name_error: 3,
  not_implemented: 4,
  refused: 5,
} as const;

const RULES_EXIT = "RULES";

/** Takes a sentence about something odd but harmless. */
type Warn = (text: string) => void;

/** Syntax of configuration.md §6.2 and §6.3. Throws `ConfigError` that says what would be right. */
export function parseNameserver(text: string, warn: Warn): NameserverOptions {
  const hash = text.indexOf("#");
  const body = (hash < 0 ? text : text.slice(0, hash)).trim();
  const server = parseServer(body);
  if (server.path === "" && body.replace(/^[a-z0-9+.-]+:\/\//i, "").includes("/"))
    warn(`the path means nothing to ${server.scheme}; write https:// where DNS over HTTPS is meant`);
  const suffix = parseFragment(hash < 0 ? "" : text.slice(hash + 1), warn);
  const asksHttp3 = suffix.http3 || H3.test(body);
  const http3 = asksHttp3 && server.scheme === "https";
  if (asksHttp3 && !http3) warn(`h3 means nothing to ${server.scheme}; write https:// or h3://`);
  const read = { ...server, ...suffix, http3 };
  return { ...read, text: nameserverText(read) };
}

/** A spelling of `https://` with `h3=true`. */
const H3 = /^h3:\/\//i;

type Server = Pick<NameserverOptions, "scheme" | "host" | "ip" | "port" | "path" | "userInfo">;

function parseServer(body: string): Server {
  if (/^(system(:\/\/)?|dhcp:\/\/system)$/i.test(body)) return serverOf("system", "", 0);
  const split = /^([a-z0-9+.-]+):\/\/(.*)$/is.exec(body);
  const scheme = (split?.[1] ?? "udp").toLowerCase();
  const rest = split?.[2] ?? body;
  if (scheme === "rcode") {
    if (Object.hasOwn(RCODE_NAMES, rest)) return serverOf("rcode", rest, 0);
    const known = Object.keys(RCODE_NAMES);
    throw new ConfigError(
      `unknown rcode "${rest}", expected one of ${known.join(", ")}${suggestion(rest, known)}`,
    );
  }
  if (scheme === "dhcp") {
    if (/^[^\s/]{1,15}$/.test(rest)) return serverOf("dhcp", rest, 0);
    throw new UnusableError(`dhcp:// needs the name of an interface, as in dhcp://eth0`);
  }
  if (scheme === "https" || scheme === "http") return parseUrl(scheme, body);
  if (scheme === "h3") return parseUrl("https", body.replace(H3, "https://"));
  if (scheme === "ts" || scheme === "tailscale") return serverOf("tailscale", rest, 0);
  if (!Object.hasOwn(PORTS, scheme))
    throw new ConfigError(
      `unknown DNS scheme "${scheme}", expected udp, tcp, tls, https, h3, http, quic, system, dhcp or rcode`,
    );
  const kind = scheme as keyof typeof PORTS;
  const { host, port } = parseHostPort(rest, PORTS[kind]);
  return serverOf(kind, host, port);
}

function serverOf(scheme: NameserverOptions["scheme"], host: string, port: number): Server {
  return { scheme, host, ip: parseIp(host), port, path: "", userInfo: null };
}

function parseUrl(scheme: "https" | "http", body: string): Server {
  if (!URL.canParse(body))
    throw new UnusableError(`malformed DoH address, expected ${scheme}://host/dns-query`);
  const url = new URL(body);
  const literal = parseIp(url.hostname);
  const host = literal ?? checkHost(url.hostname);
  const port = url.port === "" ? PORTS[scheme] : Number(url.port);
  const { username, password } = url;
  const userInfo =
    username === "" && password === "" ? null : `${percentDecoded(username)}:${percentDecoded(password)}`;
  return { scheme, host, ip: literal, port, path: url.pathname, userInfo };
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UnusableError("the user and the password of a DoH address must be UTF-8 in percent-encoding");
  }
}

/** `host`, `host:port`, `[v6]:port`, bare IPv6. */
function parseHostPort(text: string, defaultPort: number): { host: string; port: number } {
  const slash = text.indexOf("/"); // such servers have no path: what DoH addresses without a scheme end in
  const trimmed = slash < 0 ? text : text.slice(0, slash);
  const literal = parseIp(trimmed);
  if (literal !== null) return { host: literal, port: defaultPort };
  const parts = /^(\[[^\]]+\]|[^:]+)(?::(\d+))?$/.exec(trimmed);
  if (parts === null)
    throw new UnusableError(`malformed DNS server "${trimmed}", expected host or host:port`);
  const port = parts[2] === undefined ? defaultPort : Number(parts[2]);
  if (port < 1 || port > 65_535) throw new UnusableError(`DNS server port ${port} is outside 1 to 65535`);
  const host = itemAt(parts, 1);
  return { host: parseIp(host) ?? checkHost(host), port };
}

function checkHost(host: string): string {
  const name = host.toLowerCase().replace(/\.$/, "");
  if (/^[a-z0-9_]([a-z0-9_-]*)(\.[a-z0-9_][a-z0-9_-]*)*$/.test(name) && !/^[\d.]+$/.test(name)) return name;
  throw new UnusableError(`"${host}" is neither an address nor a host name`);
}

type Suffix = Omit<NameserverOptions, keyof Server | "text">;

const FLAGS = {
  "ecs-override": "ecsOverride",
  h3: "http3",
  "skip-cert-verify": "skipCertVerify",
  "disable-reuse": "disableReuse",
} as const;

function parseFragment(fragment: string, warn: Warn): Suffix {
  const disabled = new Set<number>();
  const found = {
    exit: null as string | null,
    followRules: false,
    http3: false,
    skipCertVerify: false,
    nameCertVerify: null as string | null,
    ecs: null as IpPrefix | null,
    ecsOverride: false,
    disableReuse: false,
  };
  for (const item of fragment.split("&").filter((part) => part !== "")) {
    const equals = item.indexOf("=");
    if (equals < 0) {
      found.followRules = item === RULES_EXIT;
      found.exit = item === RULES_EXIT ? null : item;
      continue;
    }
    const [key, value] = [item.slice(0, equals), item.slice(equals + 1)];
    const type = disabledType(key);
    if (Object.hasOwn(FLAGS, key)) found[FLAGS[key as keyof typeof FLAGS]] = value === "true";
    else if (key === "name-cert-verify") found.nameCertVerify = value;
    else if (key === "ecs") {
      found.ecs = parseSubnet(value);
      if (found.ecs === null) warn(`ecs=${value} is no address or prefix; no subnet is sent`);
    } else if (type === null) warn(`unknown nameserver parameter "${key}"`);
    else if (value === "true") disabled.add(type);
  }
  return { ...found, disabledTypes: [...disabled].sort((a, b) => a - b) };
}

function disabledType(key: string): number | null {
  if (key === "disable-ipv4") return 1;
  if (key === "disable-ipv6") return 28;
  const digits = /^disable-qtype-(\d{1,5})$/.exec(key)?.[1];
  return digits !== undefined && Number(digits) <= 0xffff ? Number(digits) : null;
}

function parseSubnet(value: string): IpPrefix | null {
  const cidr = parseCidr(value);
  const ip = parseIp(itemAt(value.split("/"), 0));
  return cidr === null || ip === null ? null : { ip, bits: cidr.bits };
}

/** For logs and explanations: no user info, no parameters. */
function nameserverText(server: Omit<NameserverOptions, "text">): string {
  const { port, path, exit, followRules } = server;
  const scheme = server.http3 ? "h3" : server.scheme;
  const host = server.host.includes(":") ? `[${server.host}]` : server.host;
  const place = scheme === "system" ? scheme : `${scheme}://${host}${port === 0 ? "" : `:${port}`}${path}`;
  return followRules ? `${place}#${RULES_EXIT}` : exit === null ? place : `${place}#${exit}`;
}

/** Equal for entries that may share one upstream and its connections. */
export function nameserverKey(server: NameserverOptions): string {
  return JSON.stringify({ ...server, text: "" });
}

/** A server of `default-nameserver` must not need a resolver itself. */
export function needsNoResolver({ scheme, ip }: NameserverOptions): boolean {
  return ip !== null || scheme === "system" || scheme === "dhcp" || scheme === "rcode";
}

/**
 * Leaves out servers that cannot be asked here (over QUIC, where the runtime has none; Tailscale), with one warning each.
 * Where nothing is left of a list that was not empty, every question to it fails: other servers would see names that were
 * not meant for them. `key`: of the list, for messages.
 */
export function withoutUnsupported(
  list: readonly NameserverOptions[],
  key: string,
  warn: Warn,
  hasQuic: () => boolean,
): readonly NameserverOptions[] {
  const left = list.map((server) => [server, unsupported(server, hasQuic)] as const);
  const kept = left.filter(([, why]) => why === null).map(([server]) => server);
  for (const [server, why] of left) if (why !== null) warn(`${key}: ${server.text} is left out: ${why}`);
  return list.length === 0 || kept.length > 0 ? kept : noServer(key, warn);
}

/** For a list of which nothing can be used. */
export function noServer(key: string, warn: Warn): readonly NameserverOptions[] {
  warn(`${key}: no server of the list can be used: every question to it fails`);
  return [parseNameserver("rcode://server_failure", warn)];
}

function unsupported({ scheme, http3 }: NameserverOptions, hasQuic: () => boolean): string | null {
  if ((scheme === "quic" || http3) && !hasQuic())
    return `${NO_QUIC}; write tls:// instead of quic://, or https:// without h3`;
  return scheme === "tailscale" ? "there is no Tailscale proxy; write the server's address" : null;
}
