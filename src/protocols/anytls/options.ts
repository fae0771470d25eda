import { z } from "zod";
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

/** Shorter intervals than this count as not set, as other clients have it. */
const SHORTEST_SECONDS = 5;
const DEFAULT_SECONDS = 30;

const idleSeconds = () =>
  int(0, 86_400)
    .transform((seconds) => (seconds <= SHORTEST_SECONDS ? DEFAULT_SECONDS : seconds))
    .default(DEFAULT_SECONDS);

export const outboundSchema = z.object({
  ...serverFields,
  password: secret(),
  udp: flag().default(false),
  sni: text().optional(),
  "idle-session-check-interval": idleSeconds(),
  "idle-session-timeout": idleSeconds(),
  "min-idle-session": int(0, 1000).default(0),
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
