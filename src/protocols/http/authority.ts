import type { Destination } from "#core/session.ts";
import { parseIp, toDestination } from "#net/address/ip.ts";
import { itemAt } from "#lib/at.ts";

/** No delimiters of URLs, no blanks, no control characters: what a name may never hold, whatever the resolver thinks. */
const AUTHORITY = /^(?:\[([0-9a-f:.%]+)\]|([!$-.0-9;=A-Z_a-z~]{1,255}))(?::(\d{1,5}))?$/i;

/** `host`, `host:port`, `[v6]:port`. Null where it is none of them. */
export function parseAuthority(text: string, defaultPort: number): Destination | null {
  const match = AUTHORITY.exec(text);
  if (match === null) return null;
  const [, literal, name, digits] = match;
  const port = digits === undefined ? defaultPort : Number(digits);
  if (port < 1 || port > 65535) return null;
  if (literal !== undefined && parseIp(literal) === null) return null;
  return toDestination(literal ?? name ?? "", port);
}

const CONNECT_TARGET = /^(?:([a-z]+):\/\/)?([^/]+)\/?$/i;

/** The target of CONNECT; some clients put a scheme before it. Without a port: 443 for https and wss, else 80. */
export function parseConnectTarget(text: string): Destination | null {
  const match = CONNECT_TARGET.exec(text);
  if (match === null) return null;
  const secure = /^(?:https|wss)$/i.test(match[1] ?? "");
  return parseAuthority(itemAt(match, 2), secure ? 443 : 80);
}

export interface PlainTarget {
  readonly destination: Destination;
  /** Value for `Host`. */
  readonly host: string;
  /** Origin-form, as the origin server wants it. */
  readonly path: string;
}

/** No blanks and no control characters in the path: it is written into a request line. */
const ABSOLUTE = /^(?:http|ws):\/\/([^/?#]+)([^\0-\x20\x7f#]*)(?:#|$)/i;

/**
 * Absolute-form (RFC 9112 §3.2.2). Null for any other form, another scheme, and for a URL with user information or with
 * a blank.
 */
export function parsePlainTarget(url: string, method: string): PlainTarget | null {
  const match = ABSOLUTE.exec(url);
  if (match === null) return null;
  const [, authority = "", rest = ""] = match;
  const destination = parseAuthority(authority, 80);
  if (destination === null) return null;
  const path = rest.startsWith("/") ? rest : rest === "" && method === "OPTIONS" ? "*" : `/${rest}`;
  return { destination, host: authority.replace(/:80$/, ""), path };
}
