/** What kernel-direct is doing, for the API. */
import { ApiError } from "#core/errors.ts";
import type { FastPathView, KernelDirectAbilities, KernelDirectControl } from "#core/kernel-direct.ts";
import type { Resolver } from "#core/resolver.ts";
import type { Host } from "#host/host.ts";
import { HAS_BPF } from "#platform/bpf.ts";
import { parseQuestion } from "#router/question.ts";

/** `ebpf-tc` is the name of older builds for the classifier; some clients still look for it. */
const ABILITIES: KernelDirectAbilities = {
  backends: ["nftables", "ebpf-tc", "ebpf-tc-lpm-lru", "ebpf-tc-lpm-lru-redirect"],
  features: [
    "ipv4-lpm",
    "ipv6-lpm",
    "5-tuple-lru",
    "proxy-steering",
    "atomic-generation",
    "tc-tun-redirect",
    "local-address-bypass",
    "control-plane-traffic-estimate",
    "bounded-learned-set",
  ],
};

const LOOKUP_MS = 5_000;
const WITHOUT_KERNEL: KernelDirectAbilities = { backends: [], features: ["control-plane-traffic-estimate"] };

export function kernelDirectControl(
  { kernelDirect, live, rates }: Pick<Host, "kernelDirect" | "live" | "rates">,
  resolver: () => Resolver,
): KernelDirectControl {
  const startedAtUnixSeconds = Math.floor(Date.now() / 1000 - process.uptime());
  return {
    capabilities: HAS_BPF ? ABILITIES : WITHOUT_KERNEL,
    async explain(destination) {
      const question = parseQuestion(destination);
      if ("fault" in question) throw new ApiError(400, `explain: ${question.fault}`);
      const { host, ip } = question;
      const signal = AbortSignal.timeout(LOOKUP_MS);
      const addresses =
        ip !== null ? [ip] : (await resolver().lookup(host as string, { signal })).map((answer) => answer.ip);
      return kernelDirect.explain(host, addresses) ?? [];
    },
    status() {
      const bypasses = [...kernelDirect.bypasses];
      const fastPaths = bypasses.map(({ fastPath }) => fastPath).filter((path) => path !== null);
      fastPaths.sort((a, b) => (firstPort(a) < firstPort(b) ? -1 : 1));
      return {
        backend: fastPaths[0]?.backend ?? "nftables",
        fastPaths,
        learnedSets: bypasses.map(({ learnedSet }) => learnedSet),
        process: { pid: process.pid, startedAtUnixSeconds },
        traffic: {
          uploadBytes: live.uploadTotalBytes,
          downloadBytes: live.downloadTotalBytes,
          ...rates.lastSecond,
          activeConnections: live.size,
        },
        lastError: kernelDirect.lastError,
      };
    },
  };
}

function firstPort({ interfaces }: FastPathView): string {
  return interfaces[0] ?? "";
}
