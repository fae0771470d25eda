import * as z from "zod";
import { END_REASONS } from "#core/live.ts";
import { amount, instant, portText, texts } from "#api/answer-shapes.ts";

const countries = () => texts().nullable().describe("null: never looked up");

const metadata = z.object({
  network: z.enum(["tcp", "udp"]),
  type: z.string().min(1),
  sourceIP: z.string(),
  destinationIP: z.string(),
  sourceGeoIP: countries(),
  destinationGeoIP: countries(),
  sourceIPASN: z.string(),
  destinationIPASN: z.string(),
  sourcePort: portText(),
  destinationPort: portText(),
  inboundIP: z.string(),
  inboundPort: portText(),
  inboundName: z.string(),
  inboundUser: z.string(),
  rematchName: z.string(),
  host: z.string(),
  dnsMode: z.enum(["normal", "fake-ip", "redir-host", "hosts"]),
  uid: amount(),
  process: z.string(),
  processPath: z.string(),
  specialProxy: z.string(),
  specialRules: z.string(),
  remoteDestination: z.string(),
  dscp: amount(),
  sniffHost: z.string(),
});

const fields = {
  id: z.string().min(1),
  metadata,
  start: instant(),
  chains: texts().describe("The leaf first"),
  providerChains: texts(),
  rule: z.string(),
  rulePayload: z.string(),
  upload: amount(),
  download: amount(),
};

const connection = z.object(fields).meta({ id: "Connection" });

/** The newest first. */
export const endedShape = z.object({
  connections: z.array(
    z
      .object({
        ...fields,
        end: instant(),
        reason: z
          .enum(END_REASONS)
          .describe(
            "`over`: both sides had said all, or one was cut off where a worker relayed; `closed`: by the Controller, a limit or another configuration",
          ),
        detail: z.string().describe("The error's own words; empty: there is none"),
      })
      .meta({ id: "EndedConnection" }),
  ),
});

export const connectionsShape = z.object({
  downloadTotal: amount(),
  uploadTotal: amount(),
  memory: amount(),
  connections: z.array(connection),
});
