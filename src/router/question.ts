/** What people type where a destination is asked for. */
import { domainToASCII } from "node:url";
import type { Destination } from "#core/session.ts";
import { toDestination } from "#net/address/ip.ts";

const DEFAULT_PORT = 443;

const PORTS: Readonly<Record<string, number>> = {
  "http:": 80,
  "ws:": 80,
  "https:": 443,
  "wss:": 443,
  "ftp:": 21,
};

/** RFC 1123 §2.1 with the underscore of service names; a name whose last label is a number is a mistyped address. */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MOST_NAME_CHARACTERS = 253;

export interface QuestionFault {
  /** A sentence that says what would be right; it shows nothing of a URL, which may hold a secret. */
  readonly fault: string;
}

/**
 * `host`, `host:port`, `[v6]:port` or a URL; of a URL only host and port count. `port` is taken where the text says none,
 * and is that of the scheme or 443 by default. Names come out as they are in DNS.
 */
export function parseQuestion(text: string, port?: number): Destination | QuestionFault {
  const source = text.trim();
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(source)) return ofUrl(source, port);
  const [, bracketed, plain, digits] =
    /^(?:\[([^\]]+)\]|([^:\s/?#@[\]]+))(?::(\d{1,5}))?$/.exec(source) ?? [];
  const bare = source.split(":").length > 2 ? source : "";
  const destination = named(bracketed ?? plain ?? bare, Number(digits ?? port ?? DEFAULT_PORT));
  const isV6 = plain === undefined;
  return destination === null || (isV6 && destination.ip === null)
    ? faultOf(JSON.stringify(source))
    : destination;
}

function ofUrl(source: string, port: number | undefined): Destination | QuestionFault {
  const url = URL.parse(source);
  const host = URL.parse(source.replace(/^[^:]+/, "http"))?.hostname; // of other schemes it would stay escaped
  const given = url === null || url.port === "" ? (PORTS[url?.protocol ?? ""] ?? port) : Number(url.port);
  const bare = host?.replace(/^\[|\]$/g, "") ?? "";
  return (url === null ? null : named(bare, given ?? DEFAULT_PORT)) ?? faultOf("a URL without such a host");
}

function named(host: string, port: number): Destination | null {
  if (host === "" || port > 65_535) return null;
  const literal = toDestination(host, port);
  if (literal.ip !== null) return literal;
  const name = toDestination(/^[\x20-\x7e]*$/.test(host) ? host : domainToASCII(host), port);
  return isName(name.host ?? "") ? name : null;
}

function isName(host: string): boolean {
  const labels = host.split(".");
  return (
    host.length <= MOST_NAME_CHARACTERS &&
    labels.every((label) => LABEL.test(label)) &&
    !/^\d+$/.test(labels.at(-1) ?? "")
  );
}

function faultOf(shown: string): QuestionFault {
  const got = shown.length > 80 ? `${shown.slice(0, 77)}…` : shown;
  return { fault: `expected a name, an address, host:port, [IPv6]:port or a URL, got ${got}` };
}
