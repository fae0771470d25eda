/** What the admin API answers, for the document. */
import * as z from "zod";
import { amount, unixMs } from "#api/answer-shapes.ts";
import { overviewNodes, usageNodes, userNodes } from "./by-node.ts";
import { remarkAnswers } from "./remarks.ts";
import { limitAnswers, onlineAnswers } from "./limits.ts";

const revision = () => z.int().min(0);

const inbound = z
  .object({
    tag: z.string().min(1),
    type: z.string().min(1),
    managed: z.literal(true),
    credential: z.enum(["uuid", "password"]),
    flow: z.boolean(),
    traffic: z.literal(true),
    user_count: amount(),
    enabled_user_count: amount(),
    revision: revision(),
    applied_revision: revision(),
    /** Of a fleet, by node. */
    applied: z.record(z.string(), revision()).optional(),
    pending: z.literal(true).optional(),
  })
  .meta({ id: "ManagedInbound" });

const userFields = {
  id: z.string().min(1),
  inbound: z.string().min(1),
  type: z.string().min(1),
  name: z.string(),
  flow: z.string(),
  enabled: z.boolean(),
  upload_bytes: amount(),
  download_bytes: amount(),
  traffic_generation: z.int().positive(),
  created_at: unixMs(),
  updated_at: unixMs(),
  active_connections: amount(),
  revision: revision(),
  applied_revision: revision(),
  ...remarkAnswers,
  ...limitAnswers,
};

const user = z.object({ ...userFields, nodes: userNodes }).meta({ id: "User" });

/** Sensitive: the credential of the listener's kind, and the subscription link where the user may have one. */
export const userDetail = z
  .object({
    ...userFields,
    uuid: z.string().optional(),
    password: z.string().optional(),
    subscription_url: z.string().optional(),
    ...onlineAnswers,
    nodes: userNodes,
  })
  .meta({ id: "UserDetail" });

const steps = () => z.array(z.object({ start: unixMs(), upload_bytes: amount(), download_bytes: amount() }));

export const userHistory = z
  .object({
    /** In UTC. */
    days: steps(),
    hours: steps(),
    /** Of a user who is there no more. */
    removed_at: unixMs().optional(),
  })
  .meta({ id: "UserHistory" });

export const userUsage = z
  .object({
    step_seconds: z.int().positive(),
    steps: steps(),
    nodes: usageNodes,
  })
  .meta({ id: "UserUsage" });

export const inboundList = z.object({ inbounds: z.array(inbound), listeners: z.array(inbound) });

export const userList = z.object({ users: z.array(user), inbounds: z.array(inbound) });

export const subscription = z.object({ revision: revision(), subscription_url: z.string() });

export const overview = z.object({
  version: z.string().min(1),
  api_version: z.int().positive(),
  status: z.literal("running"),
  started_at: unixMs(),
  uptime_seconds: amount(),
  platform: z.object({
    os: z.string().min(1),
    arch: z.string().min(1),
    cpu_cores: z.int().positive(),
    memory_bytes: z.int().positive(),
    goroutines: z.int().positive(),
  }),
  traffic: z.object({ uplink_total: amount(), downlink_total: amount(), active_connections: amount() }),
  nodes: overviewNodes,
  /** The state file was older than what had been acknowledged; `weir accept-rollback` takes this away. */
  rollback: z.object({ seen_generation: amount(), found_generation: amount(), since: unixMs() }).optional(),
  users: z.object({ total: amount(), enabled: amount(), disabled: amount() }),
  capabilities: z.object({ quota: z.boolean(), expiration: z.boolean() }),
  authentication_enabled: z.literal(true),
  inbounds: z.array(inbound),
});

const managedProtocol = (network: "tcp" | "udp") =>
  z.object({
    kind: z.literal("inbound"),
    type: z.string().min(1),
    name: z.string().min(1),
    category: z.literal("proxy"),
    network: z.literal(network),
    tls: z.boolean(),
    credential: z.enum(["uuid", "password"]),
    update_policy: z.literal("live"),
  });

export const protocolList = z.object({
  schema_version: z.literal(1),
  protocols: z.array(managedProtocol("tcp")),
  /** Beyond the contract: users of these are the same resources, under the same routes. */
  additional_protocols: z.array(managedProtocol("udp")),
});
