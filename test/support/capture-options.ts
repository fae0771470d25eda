/** What a capture is asked for where a test says nothing else: everything, with auto-redirect. */
import type { CaptureOptions, CapturePlan } from "#core/capture.ts";
import type { Ip } from "#core/session.ts";

export function captureOptions(options: Partial<CaptureOptions> = {}): CaptureOptions {
  return {
    autoRoute: true,
    autoRedirect: true,
    strictRoute: false,
    onExit: "open",
    guarded: true,
    routeAddress: [],
    routeExcludeAddress: [],
    includeInterface: [],
    excludeInterface: [],
    includeUid: [],
    excludeUid: [],
    excludeSourcePort: [],
    excludeDestinationPort: [],
    includeMac: [],
    excludeMac: [],
    tableIndex: 2022,
    ruleIndex: 9000,
    inputMark: 0x2023,
    outputMark: 0x2024,
    fallbackRuleIndex: 32_768,
    kernelDirect: false,
    ...options,
  };
}

/** The same of all that a capture is told; IPv4 alone. */
export function capturePlan(rest: Partial<CapturePlan> = {}): CapturePlan {
  return {
    device: { name: "tun0", index: 7 },
    inet4: { address: { ip: "198.18.0.1" as Ip, bits: 30 }, next: "198.18.0.2" as Ip },
    inet6: null,
    options: captureOptions(),
    redirectPort: 7000,
    routeSet: null,
    routeExcludeSet: null,
    ipv6: false,
    fakeRanges: [],
    hijackDns: false,
    ...rest,
  };
}
