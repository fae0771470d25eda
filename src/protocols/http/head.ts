/** Heads of HTTP/1 messages for CONNECT, on both sides: strict, bounded by their reader, no library in the way. */
import { ProtocolError } from "#core/errors.ts";
import type { Decoded } from "#net/byte-reader.ts";

export interface Head {
  readonly startLine: string;
  /** Names in lower case; values of repeated fields in order. */
  readonly fields: ReadonlyMap<string, readonly string[]>;
}

const END = "\r\n\r\n";
/** RFC 9110 §5.6.2 `token`, colon, value without control characters but tab. A folded line begins with a blank. */
// oxlint-disable-next-line no-control-regex -- control characters are what it is about
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\0-\x08\x0a-\x1f\x7f]*)$/;
// oxlint-disable-next-line no-control-regex -- as above
const START_LINE = /^[^\0-\x1f\x7f]+$/;

/** Up to and with the blank line. Throws `ProtocolError` for bare CR or LF, folded lines and names that are no tokens. */
export function decodeHead(bytes: Buffer, seen: number): Decoded<Head> | null {
  const end = bytes.indexOf(END, Math.max(0, seen - 3), "latin1");
  if (end < 0) return null;
  const [startLine, ...lines] = bytes.toString("latin1", 0, end).split("\r\n") as [string, ...string[]];
  if (!START_LINE.test(startLine)) throw new ProtocolError("a start line with control characters");
  const fields = new Map<string, string[]>();
  for (const line of lines) {
    const match = FIELD.exec(line);
    if (match === null) throw new ProtocolError("a malformed header field");
    const name = (match[1] as string).toLowerCase();
    const value = (match[2] as string).trimEnd();
    const values = fields.get(name);
    if (values === undefined) fields.set(name, [value]);
    else values.push(value);
  }
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

function connectOf({ startLine, fields }: Head): ConnectRequest {
  const match = CONNECT_LINE.exec(startLine);
  if (match === null) throw new ProtocolError("expected CONNECT host:port HTTP/1.1");
  // Bytes behind the head are the tunnel's; a length for them would be read differently by others (RFC 9112 §11.2).
  if (
    fields.has("transfer-encoding") ||
    (fields.get("content-length") ?? []).some((length) => length !== "0")
  )
    throw new ProtocolError("CONNECT with a body");
  const version = match[2] as "1.0" | "1.1";
  const options = [...(fields.get("connection") ?? []), ...(fields.get("proxy-connection") ?? [])];
  const wish = options.join(",").toLowerCase();
  return {
    version,
    target: match[1] as string,
    authorization: fields.get("proxy-authorization")?.[0],
    persistent: version === "1.1" ? !wish.includes("close") : wish.includes("keep-alive"),
  };
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
