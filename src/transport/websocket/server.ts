import type { Duplex } from "node:stream";
import type { Switched } from "#core/accepted.ts";
import { ProtocolError } from "#core/errors.ts";
import { encodeHead, type HttpHead, pathOf, readHead } from "#transport/http-head.ts";
import { framed } from "./client.ts";
import { acceptOf } from "./upgrade.ts";
import { decodeEarlyData, EARLY_DATA_HEADER } from "./early-data.ts";

const HEAD_TIMEOUT_MS = 10_000;

/** Where the stream must be asked for; the host is compared where one is configured, without case and port. */
export interface UpgradeServerOptions {
  readonly path: string;
  readonly host: string | null;
}

/**
 * Answers one upgrade request: WebSocket, or the bare stream where the request has no `Sec-WebSocket-Key`
 * (HTTPUpgrade). Anything else gets what a web server would say and `ProtocolError` is thrown. Owns the stream.
 */
export async function acceptUpgrade(wire: Duplex, options: UpgradeServerOptions): Promise<Duplex> {
  try {
    const { answer, switched, early } = readUpgrade(await readHead(wire, HEAD_TIMEOUT_MS), options);
    wire.write(answer);
    const stream = switched === "frames" ? framed(wire, "server") : wire;
    if (early !== null) stream.unshift(early);
    return stream;
  } catch (error) {
    if (error instanceof RefusedRequest) refuse(wire, error.status);
    if (!wire.writableEnded) wire.destroy();
    throw error;
  }
}

/** A request that is answered by a switch. */
export interface UpgradeRequest {
  readonly switched: Switched;
  readonly answer: Buffer;
  /** The first bytes of the stream; null: the request has none. */
  readonly early: Buffer | null;
}

/** A request for something else. */
class RefusedRequest extends ProtocolError {
  /** What the client is answered. */
  readonly status: string;

  constructor(status: string, reason: string) {
    super(`refused with ${status}: ${reason}`);
    this.status = status;
  }
}

/** Throws `ProtocolError` for all but a request to switch. */
export function readUpgrade(head: HttpHead, options: UpgradeServerOptions): UpgradeRequest {
  const key = checkRequest(head, options);
  if (key === null) return { switched: "stream", answer: switching([]), early: null };
  const offered = head.fields.get(EARLY_DATA_HEADER) ?? "";
  const early = decodeEarlyData(offered);
  const echo: [string, string][] = early === null ? [] : [["Sec-WebSocket-Protocol", offered]];
  const answer = switching([["Sec-WebSocket-Accept", acceptOf(key)], ...echo]);
  return { switched: "frames", answer, early };
}

/** Answers with the key, null for HTTPUpgrade. */
function checkRequest({ start, fields }: HttpHead, options: UpgradeServerOptions): string | null {
  const [method, target, version] = start.split(" ");
  if (version?.startsWith("HTTP/1.") !== true || target === undefined)
    throw new ProtocolError("not an HTTP/1.1 request");
  const host = (fields.get("host") ?? "").replace(/:\d+$/, "").toLowerCase();
  if (
    pathOf(target) !== pathOf(options.path) ||
    (options.host !== null && host !== options.host.toLowerCase())
  )
    throw new RefusedRequest("404 Not Found", "another path or host was asked for");
  const upgrade = fields.get("upgrade")?.toLowerCase() === "websocket";
  const connection = /(^|,)\s*upgrade\s*(,|$)/i.test(fields.get("connection") ?? "");
  if (method !== "GET" || !upgrade || !connection)
    throw new RefusedRequest("400 Bad Request", "not an upgrade");
  const key = fields.get("sec-websocket-key");
  if (key === undefined) return null;
  if (fields.get("sec-websocket-version") !== "13" || !/^[A-Za-z0-9+/]{22}==$/.test(key))
    throw new RefusedRequest("400 Bad Request", "not WebSocket version 13");
  return key;
}

function switching(fields: readonly (readonly [string, string])[]): Buffer {
  return encodeHead("HTTP/1.1 101 Switching Protocols", [
    ["Connection", "Upgrade"],
    ["Upgrade", "websocket"],
    ...fields,
  ]);
}

function refuse(wire: Duplex, status: string): void {
  const fields: [string, string][] = [
    ["Content-Length", "0"],
    ["Connection", "close"],
  ];
  wire.on("error", () => wire.destroy());
  wire.end(encodeHead(`HTTP/1.1 ${status}`, fields), () => wire.destroy());
}
