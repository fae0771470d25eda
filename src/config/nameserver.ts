/** One entry of a nameserver list: `https://dns.example/dns-query#proxy&ecs=1.2.3.0/24`. */
import type { NameserverOptions } from "#core/dns-options.ts";
import { Fault, show } from "#core/fields.ts";
import { suggestion } from "#core/nearest.ts";
import { parsePrefix } from "#net/address-fields.ts";
import { parseIp } from "#net/ip.ts";

const DEFAULT_PORTS = { udp: 53, tcp: 53, tls: 853, https: 443, http: 80, quic: 853 } as const;
type NetworkScheme = keyof typeof DEFAULT_PORTS;

const RCODES = ["success", "format_error", "server_failure", "name_error", "not_implemented", "refused"];
const SCHEMES = [...Object.keys(DEFAULT_PORTS), "system", "dhcp", "rcode", "ts", "tailscale"];

type Target = Pick<NameserverOptions, "scheme" | "host" | "ip" | "port" | "path" | "userInfo">;
type Params = Omit<NameserverOptions, keyof Target | "text">;

/** `warn` hears of what is only odd, such as a malformed `ecs`. */
export function parseNameserver(source: string, warn: (message: string) => void): NameserverOptions | Fault {
  const hash = source.indexOf("#");
  const address = (hash < 0 ? source : source.slice(0, hash)).trim();
  const target = parseTarget(address);
  if (target instanceof Fault) return target;
  const params = parseParams(hash < 0 ? "" : source.slice(hash + 1), warn);
  const text = target.userInfo === null ? source.trim() : source.trim().replace(/\/\/[^@]*@/, "//");
  return { text, ...target, ...params };
}

function parseTarget(address: string): Target | Fault {
  if (/^(system(:\/\/)?|dhcp:\/\/system)$/i.test(address)) return special("system", "");
  const [, word, rest = ""] = /^([a-z][a-z0-9+.-]*):\/\/([^]*)$/i.exec(address) ?? [];
  if (word === undefined) return networkTarget("udp", address);
  const scheme = word.toLowerCase();
  if (scheme === "dhcp")
    return rest === "" ? new Fault("dhcp:// needs an interface name") : special("dhcp", rest);
  if (scheme === "rcode") {
    if (RCODES.includes(rest)) return special("rcode", rest);
    return new Fault(
      `unknown rcode ${show(rest)}: expected one of ${RCODES.join(", ")}${suggestion(rest, RCODES)}`,
    );
  }
  if (scheme === "ts" || scheme === "tailscale") return special("tailscale", rest);
  if (scheme === "https" || scheme === "http") return webTarget(scheme, address);
  if (scheme in DEFAULT_PORTS) return networkTarget(scheme as NetworkScheme, rest.replace(/\/$/, ""));
  return new Fault(
    `unsupported scheme ${show(scheme)}: expected one of ${SCHEMES.join(", ")}${suggestion(scheme, SCHEMES)}`,
  );
}

function special(scheme: NameserverOptions["scheme"], host: string): Target {
  return { scheme, host, ip: null, port: 0, path: "", userInfo: null };
}

function networkTarget(scheme: NetworkScheme, written: string): Target | Fault {
  const bareV6 = written.startsWith("[") ? null : parseIp(written);
  const [, host, digits] = /^(\[[^\]]+\]|[^:\s/[\]]+)(?::(\d{1,5}))?$/.exec(written) ?? [];
  const port = digits === undefined ? DEFAULT_PORTS[scheme] : Number(digits);
  const name = bareV6 ?? host;
  if (name === undefined || port < 1 || port > 65_535)
    return new Fault(`expected host or host:port, got ${show(written)}`);
  return { scheme, port, path: "", userInfo: null, ...hostAndIp(name) };
}

function webTarget(scheme: "https" | "http", address: string): Target | Fault {
  const url = URL.parse(address);
  if (url === null || url.hostname === "")
    return new Fault(`expected a URL such as https://dns.example/dns-query, got ${show(address)}`);
  const userInfo =
    url.username === "" && url.password === "" ? null : unescaped(`${url.username}:${url.password}`);
  const port = url.port === "" ? DEFAULT_PORTS[scheme] : Number(url.port);
  return { scheme, port, path: url.pathname, userInfo, ...hostAndIp(url.hostname) };
}

/** A stray percent sign stays as it is. */
function unescaped(source: string): string {
  return source.replaceAll(/(%[0-9a-f]{2})+/gi, (escaped) =>
    Buffer.from(escaped.replaceAll("%", ""), "hex").toString(),
  );
}

function hostAndIp(written: string): Pick<Target, "host" | "ip"> {
  const ip = parseIp(written);
  return { host: ip ?? written.toLowerCase(), ip };
}

function parseParams(fragment: string, warn: (message: string) => void): Params {
  const items = fragment.split("&").map((item) => item.trim());
  const values = new Map<string, string>();
  let exit: string | null = null;
  for (const item of items) {
    const equals = item.indexOf("=");
    if (equals >= 0) values.set(item.slice(0, equals).toLowerCase(), item.slice(equals + 1));
    else if (item !== "") exit = item;
  }
  const isOn = (key: string) => values.get(key)?.toLowerCase() === "true";
  const ecsText = values.get("ecs");
  const ecs = ecsText === undefined ? null : parsePrefix(ecsText);
  if (ecsText !== undefined && ecs === null) warn(`ecs=${ecsText} is no address or CIDR and is left out`);
  return {
    exit: exit === "RULES" ? null : exit,
    followRules: exit === "RULES",
    http3: isOn("h3"),
    skipCertVerify: isOn("skip-cert-verify"),
    nameCertVerify: values.get("name-cert-verify") ?? null,
    ecs,
    ecsOverride: isOn("ecs-override"),
    disabledTypes: disabledTypes(values, isOn),
    disableReuse: isOn("disable-reuse"),
  };
}

function disabledTypes(
  values: ReadonlyMap<string, string>,
  isOn: (key: string) => boolean,
): readonly number[] {
  const types = new Set<number>();
  if (isOn("disable-ipv4")) types.add(1);
  if (isOn("disable-ipv6")) types.add(28);
  for (const key of values.keys()) {
    const [, digits] = /^disable-qtype-(\d{1,5})$/.exec(key) ?? [];
    if (digits !== undefined && isOn(key) && Number(digits) <= 65_535) types.add(Number(digits));
  }
  return [...types].toSorted((left, right) => left - right);
}
