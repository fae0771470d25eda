/** Where the Controller listens and under which limits. Literal addresses only: nothing here looks a name up. */
import { chmod, lstat, mkdir, rename, unlink } from "node:fs/promises";
import { connect, isIP, type AddressInfo, type Server } from "node:net";
import { dirname } from "node:path";
import {
  createServer,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from "#lib/node-http.ts";
import { ConfigError, errnoOf } from "#core/errors.ts";
import { boundAddress } from "#core/sockets.ts";
import { isWebSocketRequest } from "./upgrade.ts";

export interface TcpListener {
  /** A literal address; "" is every address, `localhost` is 127.0.0.1. */
  readonly host: string;
  readonly port: number;
  /** Listens in the way of the caller (socket marks, leased sockets); absent: as Node does. */
  readonly listen?: (server: Server, host: string, port: number) => Promise<void>;
}

/**
 * A request line and headers that do not arrive in time end the connection, so does a whole request that takes too
 * long; answers may take as long as they like (streams).
 */
export const SERVER_LIMITS = {
  headersTimeout: 10_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 65_000,
  keepAlive: true,
  keepAliveInitialDelay: 30_000,
  noDelay: true,
  shouldUpgradeCallback: isWebSocketRequest,
} as const;

/** Beyond, new connections are closed at once. Thousands of slow clients leave room for honest ones; heads take 16 KiB at most. */
export const MAX_CONNECTIONS = 4096;

export type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/** An answer of which a client takes nothing for so long is given up; one that has nothing to say may be silent. */
const STUCK_MS = 120_000;

/** Otherwise a client that reads nothing would keep its connection forever. */
export function giveUpWhenStuck(response: ServerResponse, stuckMs = STUCK_MS): void {
  response.setTimeout(stuckMs, () => {
    if (response.writableLength > 0) response.destroy();
  });
}

export function plainServer(serve: Serve): HttpServer {
  return createServer(SERVER_LIMITS, serve);
}

export async function listenTcp(server: Server, listener: TcpListener): Promise<AddressInfo> {
  const host = listener.host === "localhost" ? "127.0.0.1" : listener.host;
  if (host !== "" && isIP(host) === 0) {
    throw new ConfigError(`expected an address such as 127.0.0.1 or [::1], got ${JSON.stringify(host)}`);
  }
  const listen = listener.listen ?? listenOn;
  await (host === "" ? listenEverywhere(listen, server, listener.port) : listen(server, host, listener.port));
  return boundAddress(server);
}

/** By a descriptor that listens already and is the server's from here on. */
export function listenBy(server: Server, fd: number): Promise<void> {
  return settled(server, () => server.listen({ fd }));
}

/** Both families on one socket; IPv4 alone where the machine has no IPv6. */
async function listenEverywhere(listen: typeof listenOn, server: Server, port: number): Promise<void> {
  try {
    await listen(server, "::", port);
  } catch (error) {
    const code = errnoOf(error);
    if (code !== "EAFNOSUPPORT" && code !== "EADDRNOTAVAIL" && code !== "EINVAL") throw error;
    await listen(server, "0.0.0.0", port);
  }
}

function listenOn(server: Server, host: string, port: number): Promise<void> {
  return settled(server, () => server.listen({ host, port }));
}

/** Only the owner may open the socket: it gives full control of the core. */
const SOCKET_MODE = 0o600;
const FOLDER_MODE = 0o700;

/** sockaddr_un: unix(7) */
const MOST_PATH_BYTES = 107;

/**
 * Makes the folder, removes the socket of a dead process, never that of a living one. The runtime would remove the name
 * that it has bound, also when the socket is another process's by then: so it binds another name, and the path is the
 * caller's to remove. Answers whether it is.
 */
export async function listenUnix(server: Server, path: string): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true, mode: FOLDER_MODE });
  await removeStale(path);
  const passing = `${path}.${process.pid}`;
  if (Buffer.byteLength(passing) > MOST_PATH_BYTES) {
    await bindUnix(server, path);
    return false;
  }
  await unlink(passing).catch(() => {}); // of a dead process that had this number
  await bindUnix(server, passing);
  await rename(passing, path);
  return true;
}

async function bindUnix(server: Server, path: string): Promise<void> {
  const before = process.umask(0o777 & ~SOCKET_MODE); // bind(2) happens before the next line runs
  try {
    const listening = settled(server, () => server.listen(path));
    process.umask(before);
    await listening;
  } finally {
    process.umask(before);
  }
  await chmod(path, SOCKET_MODE);
}

async function removeStale(path: string): Promise<void> {
  const info = await lstat(path).catch(() => null); // nothing there: nothing to remove
  if (info === null) return;
  if (!info.isSocket()) throw new ConfigError(`${path} exists and is no socket`);
  if (!(await isDead(path))) throw new ConfigError(`another process listens on ${path}`);
  await unlink(path);
}

/** Only a refusal says so: one that is too busy to accept, or lets us not in, is alive. */
function isDead(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const probe = connect(path);
  probe.on("connect", () => resolve(false));
  probe.on("error", ({ code }: NodeJS.ErrnoException) => resolve(code === "ECONNREFUSED"));
  return promise.finally(() => probe.destroy());
}

/** A named pipe; its protection is the default of the system: the user and administrators. */
export async function listenPipe(server: Server, name: string): Promise<void> {
  if (process.platform !== "win32") throw new ConfigError("named pipes exist on Windows only");
  if (!name.startsWith("\\\\.\\pipe\\"))
    throw new ConfigError(String.raw`a pipe's name begins with \\.\pipe\ `);
  await settled(server, () => server.listen(name));
}

function settled(server: Server, start: () => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.once("listening", resolve);
  start();
  return promise.finally(() => {
    server.off("error", reject);
    server.off("listening", resolve);
  });
}
