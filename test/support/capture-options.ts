/** What a capture is asked for where a test says nothing else: everything, with auto-redirect. */
import type { CaptureOptions } from "#core/capture.ts";

export function captureOptions(options: Partial<CaptureOptions> = {}): CaptureOptions {
  return {
    autoRoute: true,
    autoRedirect: true,
    strictRoute: false,
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
