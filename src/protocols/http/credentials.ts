import type { Authenticator } from "#protocols/mixed/accounts.ts";

const BASIC = /^basic +([a-z0-9+/]+={0,2})$/i;

/** The value of `Proxy-Authorization` (RFC 7617): split at the first colon, UTF-8. Null where it is not Basic. */
export function parseBasic(value: string): { readonly username: string; readonly password: string } | null {
  const encoded = BASIC.exec(value.trim())?.[1];
  if (encoded === undefined) return null;
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  return colon < 0 ? null : { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

export function encodeBasic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

/** The user's name; null where none is required; undefined: not proven. */
export function identify(
  accounts: Authenticator | null,
  authorization: string | undefined,
): string | null | undefined {
  if (accounts === null) return null;
  const given = authorization === undefined ? null : parseBasic(authorization);
  return given !== null && accounts.verify(given.username, given.password) ? given.username : undefined;
}
