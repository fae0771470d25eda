/** What sections demand of each other. */
import type { Config, ListenerConfig } from "./config.ts";
import type { Context } from "./context.ts";
import type { Path } from "./report.ts";
import type { RuleSetNames } from "./rule-sets.ts";
import { show } from "#core/fields.ts";
import { parseHostPort } from "#net/address/address-fields.ts";
import { suggestion } from "#lib/nearest-word.ts";
import { tunFaults, type TunKeys } from "./sections/tun.ts";

const SET_KEYS = [
  ["route-address-set", "routeAddressSet"],
  ["route-exclude-address-set", "routeExcludeAddressSet"],
] as const;

/** The keys without names of excluding sets that there are not: without them more goes through the TUN, not less. */
export function withKnownSets<Keys extends TunKeys>(
  { report }: Context,
  tun: Keys,
  ruleSets: RuleSetNames,
  path: Path = ["tun"],
): Keys {
  const [, [key, member]] = SET_KEYS;
  const known = tun[member].filter((name, at) => {
    const fault = ruleSets.absence(name);
    if (fault !== null) report.warning([...path, key, at], `${key}: ${fault}; it is left out`);
    return fault === null;
  });
  return { ...tun, [member]: known };
}

export function checkTun(
  context: Context,
  tun: TunKeys,
  ruleSets: RuleSetNames,
  path: Path = ["tun"],
  title = "tun",
): void {
  for (const { key, message } of tunFaults(tun)) context.report.error([...path, key], `${title}: ${message}`);
  for (const [key, member] of SET_KEYS)
    for (const [at, name] of tun[member].entries()) {
      const fault = ruleSets.fault(name, ["ipcidr"]);
      if (fault !== null) context.report.error([...path, key, at], `${title}: ${key}: ${fault}`);
    }
}

/** Managed listeners must exist, once each, and be of a type whose users can change while it runs. */
export function checkManagedListeners(
  { report, registries }: Context,
  names: readonly string[],
  types: ReadonlyMap<string, string>,
): void {
  const managed = registries.protocols.flatMap(({ type, users }) => (users === undefined ? [] : [type]));
  const seen = new Set<string>();
  for (const [at, name] of names.entries()) {
    const path: Path = ["svc", "managed-listeners", at];
    const type = types.get(name);
    if (seen.has(name)) report.error(path, `svc: managed listener ${name} is named twice`);
    else if (type === undefined)
      report.error(
        path,
        `svc: managed listener ${name} not found in listeners${suggestion(name, types.keys())}`,
      );
    else if (!managed.includes(type))
      report.error(
        path,
        `svc: managed listener ${name} has type ${type}; it must be ${managed.join(" or ")}`,
      );
    seen.add(name);
  }
}

/** What a block leaves by must be there. */
export function checkProxyOf(
  key: "acme" | "update",
  settings: { readonly proxy: string } | null,
  outbounds: ReadonlySet<string>,
  { report }: Context,
): void {
  if (settings === null || settings.proxy === "" || outbounds.has(settings.proxy)) return;
  report.error(
    [key, "proxy"],
    `${key}.proxy: proxy ${settings.proxy} not found${report.suggest(settings.proxy, outbounds)}`,
  );
}

/** A backup is encrypted in one way. */
export function checkBackup({ report }: Context, { backup }: NonNullable<Config["svc"]>): void {
  if (backup === null || backup.passphraseFile === null || backup.recipients.length === 0) return;
  report.error(["svc", "backup", "recipients"], "svc: recipients and passphrase-file exclude each other");
}

/** What would only fail later and only in the log, or not be there in silence. */
export function checkController(
  { report }: Context,
  {
    externalController,
    externalControllerTls,
    externalDohServer,
    secret,
    saysEveryOrigin,
  }: Pick<
    Config["controller"],
    "externalController" | "externalControllerTls" | "externalDohServer" | "secret" | "saysEveryOrigin"
  >,
  { certificate, privateKey }: { readonly certificate: string; readonly privateKey: string },
): void {
  if (externalDohServer !== "" && !externalDohServer.startsWith("/"))
    report.warning(
      ["external-doh-server"],
      `external-doh-server must begin with / such as /dns-query; ${show(externalDohServer)} is not served`,
    );
  if (saysEveryOrigin && secret === "" && externalController + externalControllerTls !== "")
    report.warning(
      ["external-controller-cors", "allow-origins"],
      "with * and without a secret every web page that a browser here opens can read and change the configuration: set secret, or list the origins of your dashboards",
    );
  if (externalControllerTls !== "" && (certificate === "" || privateKey === ""))
    report.warning(
      ["external-controller-tls"],
      "external-controller-tls needs tls.certificate and tls.private-key; without them it stays closed",
      "key",
    );
}

/** Listeners of DNS that need the certificate of `tls`. */
export function checkDnsListeners(
  { report }: Context,
  { listenQuic, listenH3 }: Pick<Config["dns"], "listenQuic" | "listenH3">,
  { certificate, privateKey }: { readonly certificate: string; readonly privateKey: string },
): void {
  if (certificate !== "" && privateKey !== "") return;
  for (const [key, listen] of Object.entries({ "listen-quic": listenQuic, "listen-h3": listenH3 }))
    if (listen !== null)
      report.warning(
        ["dns", key],
        `dns.${key} needs tls.certificate and tls.private-key; without them it stays closed`,
        "key",
      );
}

interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** A portal that took the Controller's port would leave the Controller closed. */
export function checkPortal(
  { report }: Context,
  listen: Endpoint | null,
  controllers: Readonly<Record<"external-controller" | "external-controller-tls", string>>,
): void {
  for (const [key, text] of Object.entries(controllers)) {
    const other = text === "" ? null : parseHostPort(text);
    if (listen === null || other === null || !overlap(listen, other)) continue;
    report.error(
      ["traffic-control", "portal", "listen"],
      `traffic-control.portal.listen: port ${listen.port} is that of ${key}; another port would be right`,
    );
  }
}

const EVERYWHERE: ReadonlySet<string> = new Set(["", "0.0.0.0", "::", "[::]"]);
const nameOf = (host: string) => (host === "localhost" ? "127.0.0.1" : host.toLowerCase());

function overlap(left: Endpoint, right: Endpoint): boolean {
  if (left.port !== right.port || left.port === 0) return false;
  return EVERYWHERE.has(left.host) || EVERYWHERE.has(right.host) || nameOf(left.host) === nameOf(right.host);
}

/** The way to the time server must be one that the file has. */
export function checkTimeDialer(
  { report }: Context,
  { dialerProxy }: { readonly dialerProxy: string },
  outbounds: ReadonlySet<string>,
): void {
  if (dialerProxy !== "" && !outbounds.has(dialerProxy))
    report.error(
      ["ntp", "dialer-proxy"],
      `ntp.dialer-proxy: ${dialerProxy} not found${suggestion(dialerProxy, outbounds)}`,
    );
}

/** What a file may be sent to, and by which lists. */
export interface NameScope {
  readonly outbounds: ReadonlySet<string>;
  readonly subRules: ReadonlySet<string>;
}

/** The names in a listener: one that is not there refuses nothing, but traffic fails or goes another way. */
export function warnOfListenerNames(
  { report }: Context,
  { ruleList, target }: { readonly ruleList: string | null; readonly target: string | null },
  { outbounds, subRules }: NameScope,
  path: Path,
  prefix: string,
): void {
  if (ruleList !== null && !subRules.has(ruleList))
    report.warning(
      [...path, "rule"],
      `${prefix}: sub-rule ${ruleList} not found${report.suggest(ruleList, subRules)}; the list rules is used`,
    );
  if (target !== null && !outbounds.has(target))
    report.warning(
      [...path, "proxy"],
      `${prefix}: proxy ${target} not found${report.suggest(target, outbounds)}; every connection fails`,
    );
}

/** The same for the names that a listener's protocol has keys for. */
export function warnOfNamedOutbounds(
  { report }: Context,
  { protocol: { inbound }, options }: Pick<ListenerConfig, "protocol" | "options">,
  { outbounds }: NameScope,
  path: Path,
  prefix: string,
): void {
  for (const { path: keys, name } of inbound?.named?.(options) ?? [])
    if (!outbounds.has(name))
      report.warning(
        [...path, ...keys],
        `${prefix}: ${keys.join(".")}: proxy ${name} not found${report.suggest(name, outbounds)}; every connection fails`,
      );
}

interface ProviderRefs {
  readonly proxy: string;
  readonly dialerProxy?: string;
  readonly override?: { readonly dialerProxy: string | null };
}

/** The ways that providers are to be fetched by, and their nodes dialled through. */
export function warnOfProviderNames(
  { report }: Context,
  section: "proxy-providers" | "rule-providers",
  providers: ReadonlyMap<string, ProviderRefs>,
  outbounds: ReadonlySet<string>,
): void {
  const say = (name: string, keys: readonly string[], way: string, loss: string): void => {
    if (way === "" || outbounds.has(way)) return;
    const message = `provider ${name}: ${keys.join(".")} ${way} not found${report.suggest(way, outbounds)}; ${loss}`;
    report.warning([section, name, ...keys], message);
  };
  for (const [name, { proxy, dialerProxy = "", override }] of providers) {
    say(name, ["proxy"], proxy, "nothing can be fetched");
    say(name, ["dialer-proxy"], dialerProxy, "no node can be dialled");
    say(name, ["override", "dialer-proxy"], override?.dialerProxy ?? "", "no node can be dialled");
  }
}
