import type { Duplex } from "node:stream";
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
    const head = await readHead(wire, HEAD_TIMEOUT_MS);
    const key = checkRequest(wire, head, options);
    if (key === null) {
      wire.write(switching([]));
      return wire;
    }
    return acceptWebSocket(wire, head, key);
  } catch (error) {
    if (!wire.writableEnded) wire.destroy();
    throw error;
  }
}

function acceptWebSocket(wire: Duplex, { fields }: HttpHead, key: string): Duplex {
  const offered = fields.get(EARLY_DATA_HEADER) ?? "";
  const early = decodeEarlyData(offered);
  const echo: [string, string][] = early === null ? [] : [["Sec-WebSocket-Protocol", offered]];
  wire.write(switching([["Sec-WebSocket-Accept", acceptOf(key)], ...echo]));
  const stream = framed(wire, "server");
  if (early !== null) stream.unshift(early);
  return stream;
}

/** Answers with the key, null for HTTPUpgrade; a request for something else is answered and refused. */
function checkRequest(
  wire: Duplex,
  { start, fields }: HttpHead,
  options: UpgradeServerOptions,
): string | null {
  const [method, target, version] = start.split(" ");
  if (version?.startsWith("HTTP/1.") !== true || target === undefined)
    throw new ProtocolError("not an HTTP/1.1 request");
  const host = (fields.get("host") ?? "").replace(/:\d+$/, "").toLowerCase();
  if (
    pathOf(target) !== pathOf(options.path) ||
    (options.host !== null && host !== options.host.toLowerCase())
  )
    return refuse(wire, "404 Not Found", "another path or host was asked for");
  const upgrade = fields.get("upgrade")?.toLowerCase() === "websocket";
  const connection = /(^|,)\s*upgrade\s*(,|$)/i.test(fields.get("connection") ?? "");
  if (method !== "GET" || !upgrade || !connection) return refuse(wire, "400 Bad Request", "not an upgrade");
  const key = fields.get("sec-websocket-key");
  if (key === undefined) return null;
  if (fields.get("sec-websocket-version") !== "13" || !/^[A-Za-z0-9+/]{22}==$/.test(key))
    return refuse(wire, "400 Bad Request", "not WebSocket version 13");
  return key;
}

function switching(fields: readonly (readonly [string, string])[]): Buffer {
  return encodeHead("HTTP/1.1 101 Switching Protocols", [
    ["Connection", "Upgrade"],
    ["Upgrade", "websocket"],
    ...fields,
  ]);
}

function refuse(wire: Duplex, status: string, reason: string): never {
  const fields: [string, string][] = [
    ["Content-Length", "0"],
    ["Connection", "close"],
  ];
  wire.on("error", () => wire.destroy());
  wire.end(encodeHead(`HTTP/1.1 ${status}`, fields), () => wire.destroy());
  throw new ProtocolError(`refused with ${status}: ${reason}`);
}
