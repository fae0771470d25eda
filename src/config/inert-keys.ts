/** Keys that are read and checked, and ask for something that this build does not do. */
import type { Context } from "./context.ts";
import type { Path } from "./report.ts";

/** What of the file is looked at; the values are those of the sections. */
interface Asked {
  readonly general: { readonly inboundTfo: boolean; readonly inboundMptcp: boolean };
  readonly tun: {
    readonly includeAndroidUser: readonly number[];
    readonly includePackage: readonly string[];
    readonly excludePackage: readonly string[];
  };
  readonly tls: { readonly echKey: string };
  readonly experimental: { readonly dialerIp4pConvert: boolean };
  readonly ntp: { readonly enable: boolean; readonly writeToSystem: boolean };
  readonly proxyProviders: ReadonlyMap<
    string,
    { readonly override: { readonly overrideExpr: string | null }; readonly ageSecretKey: string | null }
  >;
  readonly ruleProviders: ReadonlyMap<string, { readonly pathInBundle: string | null }>;
}

const NO_APPS = "only Android tells apps and users apart; it has no effect here";

/** One warning a key, at its place. */
export function warnOfInertKeys(asked: Asked, { report }: Context): void {
  const { general, tun, tls, experimental, ntp, proxyProviders, ruleProviders } = asked;
  const say = (is: boolean, path: Path, why: string): void => {
    if (is) report.warning(path, `${path.at(-1)}: ${why}`, "key");
  };
  say(general.inboundTfo, ["inbound-tfo"], "TCP Fast Open is not available; it has no effect");
  say(general.inboundMptcp, ["inbound-mptcp"], "Multipath TCP is not available; it has no effect");
  say(tun.includeAndroidUser.length > 0, ["tun", "include-android-user"], NO_APPS);
  say(tun.includePackage.length > 0, ["tun", "include-package"], NO_APPS);
  say(tun.excludePackage.length > 0, ["tun", "exclude-package"], NO_APPS);
  say(tls.echKey !== "", ["tls", "ech-key"], "the Controller has no Encrypted ClientHello; it has no effect");
  say(experimental.dialerIp4pConvert, ["experimental", "dialer-ip4p-convert"], "it has no effect");
  say(
    ntp.enable && ntp.writeToSystem,
    ["ntp", "write-to-system"],
    "this build does not set the system's clock; it corrects its own time only",
  );
  for (const [name, { override, ageSecretKey }] of proxyProviders) {
    const path = ["proxy-providers", name];
    say(override.overrideExpr !== null, [...path, "override", "override-expr"], "it has no effect");
    say(ageSecretKey !== null, [...path, "age-secret-key"], "contents are not decrypted; it has no effect");
  }
  for (const [name, { pathInBundle }] of ruleProviders)
    say(pathInBundle !== null, ["rule-providers", name, "path-in-bundle"], "it has no effect");
}
