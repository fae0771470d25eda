/** Heads of HTTP/1 messages for CONNECT, on both sides: strict, bounded by their reader, no library in the way. */
import { ProtocolError } from "#core/errors.ts";
import type { Decoded } from "#net/stream/byte-reader.ts";
import { itemAt } from "#lib/at.ts";

export interface Head {
  readonly startLine: string;
  /** In order, names in lower case. */
  readonly fields: readonly (readonly [name: string, value: string])[];
}

const END = "\r\n\r\n";
/**
 * A start line, then fields: RFC 9110 §5.6.2 `token`, colon, value without control characters but tab. A folded line
 * begins with a blank and does not fit. The classes share no character with what follows them, so nothing is tried twice.
 */
// oxlint-disable-next-line no-control-regex -- control characters are what it is about
const HEAD = /^[^\0-\x1f\x7f]+(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\0-\x08\x0a-\x1f\x7f]*)*$/;

/** Up to and with the blank line. Throws `ProtocolError` for bare CR or LF, folded lines and names that are no tokens. */
export function decodeHead(bytes: Buffer, seen: number): Decoded<Head> | null {
  const end = bytes.indexOf(END, Math.max(0, seen - 3), "latin1");
  if (end < 0) return null;
  const text = bytes.toString("latin1", 0, end);
  if (!HEAD.test(text)) throw new ProtocolError("a malformed start line or header field");
  const [startLine = "", ...lines] = text.split("\r\n");
  const fields = lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
  });
  return { value: { startLine, fields }, size: end + END.length };
}

export interface ConnectRequest {
  readonly version: "1.0" | "1.1";
  readonly target: string;
  readonly authorization: string | undefined;
  /** The client will send its next request on this connection if this one is refused. */
  readonly persistent: boolean;
}

const CONNECT = "CONNECT ";
const CONNECT_LINE = /^CONNECT ([^ ]+) HTTP\/(1\.[01])$/;

/** Null as value: another method, nothing taken. Throws `ProtocolError` for a CONNECT that is none. */
export function decodeConnect(bytes: Buffer, seen: number): Decoded<ConnectRequest | null> | null {
  const known = Math.min(bytes.length, CONNECT.length);
  if (bytes.toString("latin1", 0, known) !== CONNECT.slice(0, known)) return { value: null, size: 0 };
  const head = decodeHead(bytes, seen);
  return head && { value: connectOf(head.value), size: head.size };
}

function connectOf(head: Head): ConnectRequest {
  const match = CONNECT_LINE.exec(head.startLine);
  if (match === null) throw new ProtocolError("expected CONNECT host:port HTTP/1.1");
  const version = match[2] === "1.0" ? "1.0" : "1.1";
  let authorization: string | undefined;
  let wish = "";
  for (const [name, value] of head.fields) {
    // Bytes behind the head are the tunnel's; a length for them would be read differently by others (RFC 9112 §11.2).
    if (name === "transfer-encoding" || (name === "content-length" && value !== "0"))
      throw new ProtocolError("CONNECT with a body");
    if (name === "proxy-authorization") authorization ??= value;
    if (name === "connection" || name === "proxy-connection") wish += `${value.toLowerCase()},`;
  }
  const persistent = version === "1.1" ? !wish.includes("close") : wish.includes("keep-alive");
  return { version, target: itemAt(match, 1), authorization, persistent };
}

const STATUS_LINE = /^HTTP\/1\.[01] ([1-5]\d\d)(?: |$)/;

/** Status of an answer to CONNECT; what follows the head is the tunnel's. */
export function decodeStatus(bytes: Buffer, seen: number): Decoded<number> | null {
  const known = bytes.toString("latin1", 0, 7);
  if (known !== "HTTP/1.".slice(0, known.length)) throw new ProtocolError("the proxy does not speak HTTP");
  const head = decodeHead(bytes, seen);
  if (head === null) return null;
  const status = STATUS_LINE.exec(head.value.startLine)?.[1];
  if (status === undefined) throw new ProtocolError("the proxy answered with a malformed status line");
  return { value: Number(status), size: head.size };
}
