/** What the endpoints of traffic control answer, for the document. */
import * as z from "zod";
import { amount, texts, unixSeconds } from "#api/answer-shapes.ts";
import { DIMENSIONS } from "#core/policy.ts";

const counters = z
  .object({
    upload_bytes: amount(),
    download_bytes: amount(),
    connections: amount(),
    exceeded_events: amount(),
  })
  .meta({ id: "Counters" });

const fingerprint = () => z.string().regex(/^[0-9a-f]{64}$/);
const nothing = z.object({});

/** What is 0, or "", is left out. */
const statusQuota = z.object({
  total_bytes: amount().optional(),
  upload_bytes: amount().optional(),
  download_bytes: amount().optional(),
  window: z.number().positive().optional().describe("Nanoseconds"), // a year of them is no safe integer
  window_seconds: amount().optional(),
  overage_upload_bps: amount().optional(),
  overage_download_bps: amount().optional(),
  portal: z.boolean(),
});

const ruleSubject = z.object({
  type: z.string(),
  payload: z.string(),
  target: z.string(),
  fingerprint: fingerprint(),
});

const policyStatusShape = z
  .object({
    policy: z.object({
      id: z.string(),
      name: z.string().optional(),
      kind: z.enum(DIMENSIONS),
      enabled: z.boolean(),
      upload_bps: amount().optional(),
      download_bps: amount().optional(),
      quota: statusQuota,
      mac: z.string().optional(),
      source_cidrs: texts().optional(),
      host_name: z.string().optional(),
      addresses: texts().optional(),
      rule: z.union([ruleSubject, nothing]),
      target: z.union([z.object({ kind: z.enum(["proxy", "group"]), name: z.string() }), nothing]),
    }),
    counters,
    rolling: counters,
    active_connections: amount(),
    over_quota: z.boolean(),
    last_updated: unixSeconds(),
    last_reset: unixSeconds(),
    generation: z.int().positive(),
  })
  .meta({ id: "PolicyStatus" });

export const statusShape = z.object({
  enabled: z.boolean(),
  revision: amount(),
  last_checkpoint: unixSeconds(),
  store_bytes: amount(),
  uncompressed_bytes: amount(),
  /** Only while the store cannot be opened. */
  store_error: z.string().optional(),
  /** The store was older than what had been acknowledged; `weir accept-rollback` takes this away. */
  rollback: z
    .object({ seen_generation: amount(), found_generation: amount(), since: unixSeconds() })
    .optional(),
  policies: z.array(policyStatusShape),
});

const duration = () => z.string().regex(/^[1-9]\d*[mhd]$/);

const quota = z.object({
  "total-bytes": amount().optional(),
  "upload-bytes": amount().optional(),
  "download-bytes": amount().optional(),
  window: duration().optional(),
  "overage-upload-bps": amount().optional(),
  "overage-download-bps": amount().optional(),
  portal: z.boolean(),
});

const policy = {
  id: z.string(),
  name: z.string().optional(),
  enabled: z.boolean(),
  "upload-bps": amount().optional(),
  "download-bps": amount().optional(),
  quota: quota.optional(),
  portal: z.boolean(),
};

const reports = z.object({
  enabled: z.boolean(),
  "hourly-retention": duration(),
  "daily-retention": duration(),
  "monthly-retention": duration(),
  "orphan-retention": duration(),
  "time-zone": z.string().optional(),
});

const portal = z.object({ listen: z.string().optional(), url: z.string().optional() });

/** The block as it can be sent back; the second form: it is absent from the configuration. */
const document = z.union([
  z.object({
    enabled: z.boolean(),
    "device-identity": z.literal("neighbour").optional(),
    leases: texts().optional(),
    store: z.string(),
    "checkpoint-interval": duration(),
    "max-store-size": amount(),
    portal,
    reports,
    global: z.object(policy).optional(),
    devices: z.array(z.object({ ...policy, mac: z.string().optional(), "source-cidrs": texts() })),
    rules: z.array(z.object({ ...policy, type: z.string(), payload: z.string(), target: z.string() })),
    targets: z.array(z.object({ ...policy, kind: z.enum(["proxy", "group"]), target: z.string() })),
  }),
  z.object({ enabled: z.literal(false), portal: nothing, reports: nothing }),
]);

export const policiesShape = z.object({ revision: amount(), config: document }).meta({ id: "Policies" });

export const rulesShape = z.object({
  rules: z.array(
    z.object({
      index: amount(),
      type: z.string().min(1),
      payload: z.string(),
      target: z.string(),
      fingerprint: fingerprint(),
    }),
  ),
});

const asked = { key: z.string(), from: z.int(), to: z.int() };

export const reportShape = z.object({
  ...asked,
  granularity: z.string().describe("As it was asked for"),
  buckets: z.array(z.object({ start: z.int(), counters })),
});

export const summaryShape = z.object({ ...asked, summary: counters });
