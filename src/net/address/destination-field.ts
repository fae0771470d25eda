/** A configuration value that says where to dial. */
import { Fault, scalar, show } from "#core/fields.ts";
import type { Destination } from "#core/session.ts";
import { parseHostPort } from "./address-fields.ts";
import { toDestination } from "./ip.ts";

/** `80`, `127.0.0.1:80`, `web.example:80`. */
export const destination = () =>
  scalar({ type: "string" }, (source, raw): Destination | Fault => {
    const text = /^\d+$/.test(source) ? `127.0.0.1:${source}` : source;
    const parsed = parseHostPort(text);
    if (parsed === null || parsed.host === "" || parsed.port === 0)
      return new Fault(`expected a port or host:port, got ${show(raw)}`);
    return toDestination(parsed.host, parsed.port);
  });
