import * as z from "zod";
import { ConfigError } from "#core/errors.ts";
import { Fault, flag, int, mapOf, scalar, secret, text } from "#core/fields.ts";
import { serverFields } from "#core/node-fields.ts";
import { fallbackFields } from "#protocols/shared/fallback.ts";
import {
  realityClientFields,
  realityServerFields,
  tlsClientFields,
  tlsServerFields,
} from "#transport/tls/fields.ts";
import { parseScheme } from "./padding.ts";

/** Intervals up to this, and negative ones, count as not set, as other clients have it. */
const SHORTEST_SECONDS = 5;
const LONGEST_SECONDS = 86_400;
const DEFAULT_SECONDS = 30;
const MOST_IDLE_SESSIONS = 1000;

const idleSeconds = () =>
  int()
    .transform((seconds) =>
      seconds <= SHORTEST_SECONDS ? DEFAULT_SECONDS : Math.min(seconds, LONGEST_SECONDS),
    )
    .default(DEFAULT_SECONDS);

const idleSessions = () =>
  int()
    .transform((count) => Math.min(Math.max(count, 0), MOST_IDLE_SESSIONS))
    .default(0);

export const outboundSchema = z.object({
  ...serverFields,
  password: secret(),
  udp: flag().default(false),
  sni: text().optional(),
  "idle-session-check-interval": idleSeconds(),
  "idle-session-timeout": idleSeconds(),
  "min-idle-session": idleSessions(),
  "disable-reuse": flag().default(false),
  "client-metadata": text().optional(),
  ...tlsClientFields,
  ...realityClientFields,
});
export type OutboundOptions = z.output<typeof outboundSchema>;

/** The text of a scheme; a last line break, which YAML's block texts have, is no part of it. */
const paddingScheme = () =>
  scalar({ type: "string" }, (source) => {
    const trimmed = source.trim();
    try {
      if (trimmed !== "") parseScheme(Buffer.from(trimmed));
      return trimmed;
    } catch (error) {
      if (error instanceof ConfigError) return new Fault(error.message);
      throw error;
    }
  });

export const inboundSchema = z.object({
  users: mapOf(secret()),
  "padding-scheme": paddingScheme().default(""),
  "allow-insecure": flag().default(false),
  ...tlsServerFields,
  ...realityServerFields,
  ...fallbackFields,
});
export type InboundOptions = z.output<typeof inboundSchema>;
