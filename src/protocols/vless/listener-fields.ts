import { flag } from "#core/fields.ts";
import { transportServerFields } from "#transport/fields.ts";
import { muxServerFields } from "#transport/mux/fields.ts";
import { realityServerFields, tlsServerFields } from "#transport/tls/fields.ts";
import { fallbackFields } from "./fallback.ts";

/** What VLESS and Trojan listeners have in common: what hides them, what carries them, where strangers go. */
export const listenerFields = {
  "allow-insecure": flag().default(false),
  ...tlsServerFields,
  ...realityServerFields,
  ...transportServerFields,
  ...muxServerFields,
  ...fallbackFields,
};
