/** What sections demand of each other. */
import type { Context } from "./context.ts";
import type { Path } from "./report.ts";
import type { RuleSetNames } from "./rule-sets.ts";
import { suggestion } from "#core/nearest.ts";
import { tunFaults, type TunKeys } from "./sections/tun.ts";

export function checkTun(
  context: Context,
  tun: TunKeys,
  ruleSets: RuleSetNames,
  path: Path = ["tun"],
  title = "tun",
): void {
  for (const { key, message } of tunFaults(tun)) context.report.error([...path, key], `${title}: ${message}`);
  const lists = [
    ["route-address-set", tun.routeAddressSet],
    ["route-exclude-address-set", tun.routeExcludeAddressSet],
  ] as const;
  for (const [key, names] of lists)
    for (const [at, name] of names.entries()) {
      const fault = ruleSets.fault(name, ["ipcidr"]);
      if (fault !== null) context.report.error([...path, key, at], `${title}: ${key}: ${fault}`);
    }
}

const MANAGED_TYPES = ["vless", "anytls"];

/** Managed listeners must exist, once each, and be of a type whose users can change while it runs. */
export function checkManagedListeners(
  { report }: Context,
  names: readonly string[],
  types: ReadonlyMap<string, string>,
): void {
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
    else if (!MANAGED_TYPES.includes(type))
      report.error(
        path,
        `svc: managed listener ${name} has type ${type}; it must be ${MANAGED_TYPES.join(" or ")}`,
      );
    seen.add(name);
  }
}

/** A server without a certificate would only fail later, and only in the log. */
export function checkControllerTls(
  { report }: Context,
  { externalControllerTls }: { readonly externalControllerTls: string },
  { certificate, privateKey }: { readonly certificate: string; readonly privateKey: string },
): void {
  if (externalControllerTls !== "" && (certificate === "" || privateKey === ""))
    report.warning(
      ["external-controller-tls"],
      "external-controller-tls needs tls.certificate and tls.private-key; without them it stays closed",
      "key",
    );
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
