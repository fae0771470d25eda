/** GET /api/svc/kernel-direct/status (kernel-direct.md §6). Hyphens inside of a fast path, underscores elsewhere. */
import * as z from "zod";
import { amount, texts, unixSeconds } from "#api/answer-shapes.ts";
import { queryOf } from "#api/shapes.ts";
import { route, type Route } from "#api/route.ts";
import type {
  FastPathView,
  KernelDirectControl,
  KernelDirectView,
  LearnedSetView,
  TrafficEstimate,
} from "#core/kernel-direct.ts";

const CLASSIFIERS = ["ebpf-tc-lpm-lru", "ebpf-tc-lpm-lru-redirect"] as const;
const CLASSIFIER_FIELDS = {
  "requested-interfaces": texts(),
  interfaces: texts(),
  packets: amount(),
  bytes: amount(),
  "proxy-packets": amount(),
  "proxy-bytes": amount(),
};

const fastPathShape = z
  .object({
    backend: z.enum(CLASSIFIERS),
    ...CLASSIFIER_FIELDS,
    "proxy-redirect-interface": z.string().optional(),
    mark: amount(),
    "proxy-mark": amount().optional(),
    "input-mark": amount().optional(),
    ipv4: amount(),
    ipv6: amount(),
    "direct-prefixes": amount(),
    "proxy-prefixes": amount(),
    "bypass-prefixes": amount(),
    "flow-max-entries": amount(),
    "direct-packets": amount(),
    "direct-bytes": amount(),
    "flow-hits": amount(),
    "updated-at": z.iso.datetime(),
  })
  .meta({ id: "KernelFastPath" });

const trafficShape = z
  .object({
    upload_bytes: amount(),
    download_bytes: amount(),
    upload_rate_bytes_per_second: amount(),
    download_rate_bytes_per_second: amount(),
    active_connections: amount(),
  })
  .meta({ id: "TrafficEstimate" });

const statusShape = z
  .object({
    backend: z.enum(["nftables", ...CLASSIFIERS]),
    fast_paths: z.array(fastPathShape),
    learned_sets: z.array(
      z.object({
        max_entries: amount(),
        max_records: amount(),
        learned_addresses: amount(),
        direct_addresses: amount(),
        proxy_addresses: amount(),
        learned_domains: amount(),
        evictions: amount(),
      }),
    ),
    process: z.object({ pid: amount(), started_at: unixSeconds() }),
    svc_traffic: trafficShape,
    proxy_traffic: trafficShape.describe("Deprecated: svc_traffic"),
    "last-error": z.string().optional().describe("Why the last classifier ended or could not be made"),
    ...z.object(CLASSIFIER_FIELDS).partial().shape,
    explain: z
      .array(
        z.object({
          address: z.string(),
          direct: z.boolean(),
          learnt: z.enum(["direct", "proxy"]).nullable(),
          reason: z.string(),
        }),
      )
      .optional()
      .describe("With ?explain=: a row for each address and each TUN that learns"),
  })
  .meta({ id: "KernelDirectStatus" });

export function kernelDirectRoutes(kernelDirect: KernelDirectControl): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/api/svc/kernel-direct/status",
      summary: "What the kernel forwards past this program, and what was learnt for it",
      answer: { status: 200, description: "One document", schema: statusShape },
      faults: { 503: "The name to explain has no address", 504: "No server said in time which it has" },
      query: queryOf({ explain: z.string().min(1).max(253).optional() }),
      async handle({ query }) {
        const status = statusJson(kernelDirect.status());
        if (query.explain === undefined) return status;
        const rows = await kernelDirect.explain(query.explain);
        return { ...status, explain: rows.map(({ ip, ...row }) => ({ address: ip, ...row })) };
      },
    }),
  ];
}

function statusJson({ backend, fastPaths, learnedSets, process, traffic, lastError }: KernelDirectView) {
  const paths = fastPaths.map(fastPathJson);
  const [first] = paths;
  return {
    backend,
    fast_paths: paths,
    learned_sets: learnedSets.map(learnedSetJson),
    process: { pid: process.pid, started_at: process.startedAtUnixSeconds },
    svc_traffic: trafficJson(traffic),
    proxy_traffic: trafficJson(traffic),
    ...(lastError === null ? {} : { "last-error": lastError }),
    // The contract names them at this level, too: those of the first classifier.
    ...(first === undefined
      ? {}
      : Object.fromEntries(Object.entries(first).filter(([key]) => Object.hasOwn(CLASSIFIER_FIELDS, key)))),
  };
}

function fastPathJson(path: FastPathView) {
  const { prefixes, direct, proxy, proxyRedirectInterface, proxyMark, inputMark } = path;
  return {
    backend: path.backend,
    "requested-interfaces": path.requestedInterfaces,
    interfaces: path.interfaces,
    ...(proxyRedirectInterface === null ? {} : { "proxy-redirect-interface": proxyRedirectInterface }),
    mark: path.mark,
    ...(proxyMark === 0 ? {} : { "proxy-mark": proxyMark }),
    ...(inputMark === 0 ? {} : { "input-mark": inputMark }),
    ipv4: prefixes.ipv4,
    ipv6: prefixes.ipv6,
    "direct-prefixes": prefixes.direct,
    "proxy-prefixes": prefixes.proxy,
    "bypass-prefixes": prefixes.bypass,
    "flow-max-entries": path.flowMaxEntries,
    packets: direct.packets,
    bytes: direct.bytes,
    "direct-packets": direct.packets,
    "direct-bytes": direct.bytes,
    "proxy-packets": proxy.packets,
    "proxy-bytes": proxy.bytes,
    "flow-hits": path.flowHits,
    "updated-at": new Date(path.updatedAtMs).toISOString(),
  };
}

function learnedSetJson(set: LearnedSetView) {
  return {
    max_entries: set.maxEntries,
    max_records: set.maxRecords,
    learned_addresses: set.directAddresses + set.proxyAddresses,
    direct_addresses: set.directAddresses,
    proxy_addresses: set.proxyAddresses,
    learned_domains: set.records,
    evictions: set.evictions,
  };
}

function trafficJson(traffic: TrafficEstimate) {
  return {
    upload_bytes: traffic.uploadBytes,
    download_bytes: traffic.downloadBytes,
    upload_rate_bytes_per_second: traffic.uploadRate,
    download_rate_bytes_per_second: traffic.downloadRate,
    active_connections: traffic.activeConnections,
  };
}
