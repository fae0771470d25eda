/** A status with a classifier in mark mode, for tests of the API alone. */
import type { KernelDirectControl } from "#core/kernel-direct.ts";

export const SHOWN_KERNEL_DIRECT: KernelDirectControl = {
  capabilities: { backends: ["nftables", "ebpf-tc-lpm-lru"], features: ["ipv4-lpm"] },
  explain: async (destination) => [
    { ip: destination, direct: false, reason: "rules[0] MATCH,PX", learnt: null },
  ],
  status: () => ({
    backend: "ebpf-tc-lpm-lru",
    fastPaths: [
      {
        backend: "ebpf-tc-lpm-lru",
        requestedInterfaces: ["br-lan"],
        interfaces: ["eth0", "wlan0"],
        proxyRedirectInterface: null,
        mark: 0x4000_0000,
        proxyMark: 0x2000_0000,
        inputMark: 0x2023,
        prefixes: { ipv4: 36, ipv6: 5, direct: 31, proxy: 6, bypass: 4 },
        flowMaxEntries: 65_536,
        direct: { packets: 9120, bytes: 7_340_032 },
        proxy: { packets: 410, bytes: 393_216 },
        flowHits: 9001,
        updatedAtMs: Date.UTC(2026, 7, 6, 12, 34, 56, 789),
      },
    ],
    learnedSets: [
      {
        maxEntries: 4096,
        maxRecords: 16_384,
        directAddresses: 31,
        proxyAddresses: 6,
        records: 52,
        evictions: 0,
      },
    ],
    process: { pid: 2143, startedAtUnixSeconds: 1_785_312_000 },
    traffic: {
      uploadBytes: 1024,
      downloadBytes: 4096,
      uploadRate: 0,
      downloadRate: 512,
      activeConnections: 3,
    },
    lastError: null,
  }),
};
