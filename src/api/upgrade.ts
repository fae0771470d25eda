/**
 * WebSocket requests go through the same routes, hooks and answers as any other; a handler that streams takes the
 * socket over. Everything else about the upgrade (401, 400, 404) is then an ordinary answer on that socket.
 */
import { ServerResponse, type IncomingMessage } from "#lib/node-http.ts";
import type { Socket } from "node:net";

export interface Upgrade {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: Socket;
  readonly head: Buffer;
}

/** Which requests are upgrades; filled by the servers, read by the routes. */
export type Upgrades = WeakMap<IncomingMessage, Upgrade>;

/**
 * Only a WebSocket handshake is an upgrade to us; `Upgrade: h2c` and the like are answered as if they had not asked
 * (RFC 9110 §7.8), and so is a handshake behind a request that is still being answered on its connection.
 */
export function isWebSocketRequest(request: IncomingMessage): boolean {
  const { method, headers, socket } = request;
  if (method !== "GET" || headers.upgrade?.toLowerCase() !== "websocket") return false;
  return !("_httpMessage" in socket && socket._httpMessage); // Node's own mark: the answer that has the connection
}

/** How long the answer to a refused handshake may take to leave. */
const CLOSE_MS = 5_000;

/** For a server's `upgrade` event. */
export function takeUpgrade(
  upgrades: Upgrades,
  serve: (request: IncomingMessage, response: ServerResponse) => void,
): (request: IncomingMessage, socket: Socket, head: Buffer) => void {
  return (request, socket, head) => {
    socket.on("error", () => socket.destroy()); // the client's own loss
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(socket);
    response.on("finish", () => {
      socket.end();
      setTimeout(() => socket.destroy(), CLOSE_MS).unref();
    });
    upgrades.set(request, { request, response, socket, head });
    serve(request, response);
  };
}
