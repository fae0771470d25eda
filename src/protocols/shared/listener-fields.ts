import { flag } from "#core/fields.ts";
import { transportServerFields } from "#transport/fields.ts";
import { muxServerFields } from "#transport/mux/fields.ts";
import { realityServerFields, tlsServerFields } from "#transport/tls/fields.ts";
import { fallbackFields } from "./fallback.ts";

/** Keys of every listener with TLS, transports, multiplexing and fallbacks. */
export const listenerFields = {
  "allow-insecure": flag().default(false),
  ...tlsServerFields,
  ...realityServerFields,
  ...transportServerFields,
  ...muxServerFields,
  ...fallbackFields,
};
