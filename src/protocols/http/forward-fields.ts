import { itemAt } from "#lib/at.ts";

/** Header fields on their way through a proxy. Raw lists: name, value, name, value, in the sender's order and spelling. */

const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "trailers",
  "transfer-encoding",
  "upgrade",
]);

/** Never removed because `Connection` names them: without a length the body would run into the next message. */
const KEPT: ReadonlySet<string> = new Set(["content-length"]);

/** Without the fields for this hop only (RFC 9110 §7.6.1) and without those in `also`. */
export function endToEnd(raw: readonly string[], also: readonly string[] = []): string[] {
  const dropped = new Set([...HOP_BY_HOP, ...also, ...namedInConnection(raw)]);
  return keep(raw, (name) => KEPT.has(name) || !dropped.has(name));
}

/** For an upgrade only what is between client and proxy goes. */
export function withoutProxyFields(raw: readonly string[], also: readonly string[] = []): string[] {
  return keep(raw, (name) => !name.startsWith("proxy-") && !also.includes(name));
}

function namedInConnection(raw: readonly string[]): string[] {
  const names: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (itemAt(raw, at).toLowerCase() !== "connection") continue;
    for (const name of itemAt(raw, at + 1).split(",")) names.push(name.trim().toLowerCase());
  }
  return names;
}

function keep(raw: readonly string[], wanted: (lowerCaseName: string) => boolean): string[] {
  const kept: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = itemAt(raw, at);
    if (wanted(name.toLowerCase())) kept.push(name, itemAt(raw, at + 1));
  }
  return kept;
}

export function countOf(raw: readonly string[], lowerCaseName: string): number {
  let count = 0;
  for (let at = 0; at < raw.length; at += 2) if (itemAt(raw, at).toLowerCase() === lowerCaseName) count++;
  return count;
}
