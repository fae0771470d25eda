/** Answers of the routes about new listeners and nodes. */
import * as z from "zod";
import { texts } from "#api/answer-shapes.ts";

const listener = z.object({
  name: z.string(),
  type: z.string(),
  hosts: texts(),
  ports: z.array(z.int()),
  listed: z.boolean().describe("An item of `listeners`; false: a top-level port"),
  managed: z.boolean().describe("Its users change while it runs"),
});

const node = z.object({
  name: z.string(),
  type: z.string(),
  server: z.string(),
  inert: z.string().nullable().describe("Why it cannot be used"),
});

export const setupAnswer = z.object({
  listeners: z.array(listener),
  nodes: z.array(node),
  groups: z.array(z.object({ name: z.string(), members: texts() })),
  svc: z.object({ public_base_url: z.string(), managed: texts() }).nullable(),
  acme: z.boolean().describe("There is an `acme` block, so listeners can ask for certificates"),
  managed_types: texts(),
});

export const keysAnswer = z.object({ values: z.record(z.string(), z.string()) });
export const certificateAnswer = z.object({ certificate: z.string(), private_key: z.string() });
export const portAnswer = z.object({ fault: z.string().nullable() });
export const nodesAnswer = z.object({
  nodes: z.array(z.record(z.string(), z.unknown())).describe("Items for `proxies`"),
  skipped: z.int().describe("Lines that are no links"),
});
export const linksAnswer = z.object({ links: texts() });

export const targetsAnswer = z.object({
  targets: z.array(
    z.object({
      host: z.string(),
      port: z.int(),
      server_name: z.string(),
      faults: texts(),
      doubts: texts(),
      round_trip_ms: z.number().nullable(),
    }),
  ),
});
