/** `scheme://userinfo@host:port/?key=value#name` as clients emit and accept it (share-links.md §1). */
import { ConfigError } from "#core/errors.ts";
import type { Link } from "#core/share-link.ts";
import { trimEndOf } from "#lib/trim-end.ts";

const LONGEST_NAME = 256;

/** Throws `ConfigError`, which never shows the link: it holds a secret. */
export function splitLink(link: string): Link {
  const [, scheme = "", rest = ""] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is.exec(link) ?? [];
  if (scheme === "") throw new ConfigError("no share link");
  const [beforeName, rawName] = cut(rest, "#");
  const [beforeQuery, rawQuery] = cut(beforeName, "?");
  const at = beforeQuery.lastIndexOf("@");
  const rawUser = at < 0 ? "" : beforeQuery.slice(0, at);
  const authority = beforeQuery.slice(at + 1).replace(/\/.*$/s, "");
  const { host, port, ports } = splitAuthority(authority);
  const name = decode(rawName).trim().slice(0, LONGEST_NAME) || (port === null ? host : `${host}:${port}`);
  return {
    scheme: scheme.toLowerCase(),
    body: beforeQuery,
    rawUser,
    user: decode(rawUser),
    host,
    port,
    ports,
    query: readQuery(rawQuery),
    name,
  };
}

function cut(text: string, mark: string): readonly [before: string, after: string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

/** IPv6 in brackets, or without where the last colon is clearly the port's. */
export function splitAuthority(text: string): { host: string; port: number | null; ports: string | null } {
  const [, bracketed, plain, digits, more] =
    /^(?:\[([^\]]*)\]|(.*?))(?::(\d{1,5})([,-][\d,-]{1,200})?)?$/s.exec(text) ?? [];
  const host = bracketed ?? decode(plain ?? "");
  if (host === "") throw new ConfigError("the link has no host");
  const port = digits === undefined ? null : Number(digits);
  if (port !== null && (port < 1 || port > 65_535)) throw new ConfigError("the link's port is none");
  return { host, port, ports: more === undefined ? null : `${digits}${more}` };
}

/** A raw `+` is a space, but for values that are base64; `&amp;` is what chat programs make of `&`. */
const BASE64_KEYS: ReadonlySet<string> = new Set(["pbk", "pqv", "ech", "pcs"]);

function readQuery(text: string): ReadonlyMap<string, string> {
  const query = new Map<string, string>();
  for (const part of text.split("&")) {
    const [rawKey, rawValue] = cut(part, "=");
    const key = decode(rawKey.replace(/^amp;/, "")).toLowerCase();
    const value = BASE64_KEYS.has(key)
      ? decode(rawValue).replaceAll(" ", "+")
      : decode(rawValue.replaceAll("+", " "));
    if (key !== "" && value !== "") query.set(key, value); // present but empty means absent
  }
  return query;
}

/** Percent-escapes undone where they are right, else the text as it is. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // clients that escape nothing write a bare % too
  }
}

/** Both alphabets, with or without padding; null where it is no base64 of UTF-8 text. */
export function decodeBase64(text: string): string | null {
  const letters = text.replaceAll(/\s/g, "").replaceAll("-", "+").replaceAll("_", "/");
  const body = trimEndOf(letters, "=");
  if (body === "" || body.length % 4 === 1 || !/^[A-Za-z0-9+/]*$/.test(body)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(body, "base64"));
  } catch {
    return null; // bytes of something else
  }
}

export const isTrue = (value: string | undefined): boolean =>
  value === "1" || value?.toLowerCase() === "true";

export function needPort({ port }: Link, otherwise: number | null = null): number {
  const known = port ?? otherwise;
  if (known) return known;
  throw new ConfigError("the link has no port");
}

export interface LinkParts {
  readonly scheme: string;
  /** Encoded already. */
  readonly user: string;
  readonly host: string;
  readonly port: number;
  /** Some protocols end the authority with it. */
  readonly path?: "/";
  /** Absent and empty values are left out. */
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly name: string;
}

export function joinLink({ scheme, user, host, port, path, query, name }: LinkParts): string {
  const pairs = Object.entries(query).filter(([, value = ""]) => value !== "");
  const text = pairs.map(([key, value = ""]) => `${key}=${encodeURIComponent(value)}`).join("&");
  const server = host.includes(":") ? `[${host}]` : host;
  const left = user === "" ? "" : `${user}@`;
  return `${scheme}://${left}${server}:${port}${path ?? ""}${text === "" ? "" : `?${text}`}#${encodeURIComponent(name)}`;
}
