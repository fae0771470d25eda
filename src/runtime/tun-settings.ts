/** From the keys of `tun` to the settings of the TUN and the capture of traffic. */
import { GUARD_DEVICE } from "#capture/index.ts";
import type { Config } from "#config/config.ts";
import { TUN_NAME } from "#config/sections/tun.ts";
import type { TunConfig } from "#config/sections/index.ts";
import type { CaptureOptions, Prefix } from "#core/capture.ts";
import type { Range } from "#core/ranges.ts";
import { ConfigError } from "#core/errors.ts";
import type { BypassSettings } from "#core/kernel-direct.ts";
import type { TunSettings } from "#tun/settings.ts";
import { fakeRanges } from "./direct-classifier.ts";
import { networkInterfaces } from "node:os";

/** Set, it keeps IPv6 on the TUN where no other interface has any. */
const SKIP_IPV6_CHECK = "SKIP_SYSTEM_IPV6_CHECK";

/** Every TUN that the configuration asks for, the block `tun` first. Throws `ConfigError`. */
export function tunSettings(config: Config): readonly TunSettings[] {
  const { tun, tunListeners } = config;
  const listeners = tunListeners.filter(({ enable }) => enable);
  const all = [
    ...(tun.enable ? [settingsOf(tun, { name: TUN_NAME, ruleList: null, target: null }, config)] : []),
    ...listeners.map(({ name, ruleList, target, ...own }) =>
      settingsOf(own, { name, ruleList, target }, config),
    ),
  ];
  const guarded = all.find(({ capture }) => capture.autoRedirect) ?? all.find((each) => captures(each));
  return all.map((settings) => {
    const { capture, name } = settings;
    if (settings === guarded) return { ...settings, capture: { ...capture, guarded: true } };
    if (capture.onExit === "closed" && captures(settings))
      throw new ConfigError(
        `${name}: on-exit: closed: one TUN alone can be kept in, and that is ${guarded?.name}`,
      );
    return settings;
  });
}

/** A node's own mark would let the kernel send its connections into the TUN again. */
export function markedNodes({ proxies }: Config, wanted: readonly TunSettings[]): readonly string[] {
  if (!wanted.some(({ capture }) => capture.autoRedirect)) return [];
  const marked = proxies.filter(({ routingMark }) => routingMark !== 0);
  return marked.map(
    ({ name }) => `proxy ${name}: routing-mark has no effect while tun.auto-redirect marks every socket`,
  );
}

function captures({ capture, fileDescriptor }: TunSettings): boolean {
  return capture.autoRoute && fileDescriptor === 0;
}

function settingsOf(
  tun: TunConfig,
  context: Pick<TunSettings, "name" | "ruleList" | "target">,
  config: Config,
): TunSettings {
  const { ipv6, routingMark } = config.general;
  if (tun.autoRedirect && routingMark !== 0)
    throw new ConfigError(
      "routing-mark: tun.auto-redirect marks every socket itself (auto-redirect-output-mark); take routing-mark out",
    );
  return {
    ...context,
    stack: tun.stack,
    device: tun.device,
    mtu: tun.mtu,
    gso: tun.gso,
    fileDescriptor: tun.fileDescriptor,
    addresses: [...tun.inet4Address, ...(ipv6 && hasIpv6() ? tun.inet6Address : [])],
    dnsHijack: tun.dnsHijack,
    udpTimeoutMs: tun.udpTimeout * 1000,
    icmpTimeoutMs: tun.icmpTimeout * 1000,
    forwardsIcmp: !tun.disableIcmpForwarding,
    loopbackAddresses: tun.loopbackAddress,
    capture: captureOptions(tun),
    fakeRanges: config.dns.enable && config.dns.enhancedMode === "fake-ip" ? fakeRanges(config) : [],
    bypass: bypassSettings(tun, fakeRanges(config)),
    detectsInterface: tun.autoRoute && tun.autoDetectInterface,
    routeSets: tun.routeAddressSet.length === 0 ? null : tun.routeAddressSet,
    routeExcludeSets: tun.routeExcludeAddressSet.length === 0 ? null : tun.routeExcludeAddressSet,
    ipv6,
  };
}

function captureOptions(tun: TunConfig): CaptureOptions {
  return {
    autoRoute: tun.autoRoute,
    autoRedirect: tun.autoRedirect,
    strictRoute: tun.strictRoute,
    onExit: tun.onExit,
    guarded: false,
    routeAddress: [...tun.routeAddress, ...tun.inet4RouteAddress, ...tun.inet6RouteAddress],
    routeExcludeAddress: [
      ...tun.routeExcludeAddress,
      ...tun.inet4RouteExcludeAddress,
      ...tun.inet6RouteExcludeAddress,
    ],
    includeInterface: tun.includeInterface,
    excludeInterface: tun.excludeInterface,
    includeUid: ranges(tun.includeUid, tun.includeUidRange),
    excludeUid: ranges(tun.excludeUid, tun.excludeUidRange),
    excludeSourcePort: ranges(tun.excludeSrcPort, tun.excludeSrcPortRange),
    excludeDestinationPort: ranges(tun.excludeDstPort, tun.excludeDstPortRange),
    includeMac: tun.includeMacAddress,
    excludeMac: tun.excludeMacAddress,
    tableIndex: tun.iproute2TableIndex,
    ruleIndex: tun.iproute2RuleIndex,
    inputMark: tun.autoRedirectInputMark,
    outputMark: tun.autoRedirectOutputMark,
    fallbackRuleIndex: tun.autoRedirectIproute2FallbackRuleIndex,
    kernelDirect: tun.kernelDirect,
  };
}

function bypassSettings(tun: TunConfig, fakeNetworks: readonly Prefix[]): BypassSettings | null {
  if (!tun.kernelDirect) return null;
  const classifier = {
    interfaces: tun.kernelDirectEbpfInterfaces,
    maxEntries: tun.kernelDirectEbpfMaxEntries,
    flowEntries: tun.kernelDirectEbpfFlowEntries,
    directMark: tun.kernelDirectEbpfMark,
    proxyMark: tun.kernelDirectEbpfProxyMark,
    inputMark: tun.autoRedirectInputMark,
    proxyMode: tun.kernelDirectEbpfProxy,
    redirects: tun.kernelDirectEbpfProxyRedirect,
    directPrefixes: tun.kernelDirectEbpfDirectPrefixes,
    proxyPrefixes: tun.kernelDirectEbpfProxyPrefixes,
    required: tun.kernelDirectEbpfRequired,
  };
  return {
    maxEntries: tun.kernelDirectMaxEntries,
    fakeRanges: fakeNetworks,
    classifier: tun.kernelDirectEbpf ? classifier : null,
  };
}

function ranges(numbers: readonly number[], written: readonly Range[]): readonly Range[] {
  return [...numbers.map((number) => ({ from: number, to: number })), ...written];
}

/** Has any interface an address of IPv6 that reaches further than its link? */
function hasIpv6(): boolean {
  if ((process.env[SKIP_IPV6_CHECK] ?? "") !== "") return true;
  return Object.entries(networkInterfaces()).some(
    ([name, all]) =>
      name !== GUARD_DEVICE &&
      all?.some(
        ({ family, internal, address }) => family === "IPv6" && !internal && !/^fe[89ab]/i.test(address),
      ),
  );
}
