/** The Controller as the App sees it: give it options and a `Control`, get endpoints and a way to stop. */
import type { Server as HttpServer } from "node:http";
import type { Http2SecureServer, ServerHttp2Session } from "node:http2";
import type { AddressInfo, Server, Socket } from "node:net";
import { rmSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import type { Control } from "#core/control.ts";
import { ConfigError, listenFault, messageOf } from "#core/errors.ts";
import { descriptorOf } from "#core/handover.ts";
import type { Log } from "#core/log.ts";
import type { EventEmitter } from "node:events";
import { Answering } from "./answering.ts";
import type { AppOptions, Transport } from "./app-env.ts";
import type { Application } from "./application.ts";
import { isLoopbackHost } from "./hosts.ts";
import {
  giveUpWhenStuck,
  listenBy,
  listenPipe,
  listenTcp,
  listenUnix,
  MAX_CONNECTIONS,
  plainServer,
  type Serve,
  type TcpListener,
} from "./listeners.ts";
import { openTlsServer, type TlsOptions } from "./tls.ts";
import { takeUpgrade, type Upgrades } from "./upgrade.ts";

export interface ControllerOptions extends AppOptions {
  readonly listeners: {
    readonly http?: TcpListener;
    readonly https?: TcpListener & { readonly tls: TlsOptions };
    /** Absolute path. */
    readonly unix?: {
      readonly path: string;
      /** A socket that listens there already, owned from here on. */
      readonly fd?: number;
    };
    /** `\\.\pipe\…` */
    readonly pipe?: { readonly name: string };
  };
}

export interface ControllerEndpoint {
  readonly kind: Transport["kind"];
  /** `127.0.0.1:9090`, a path, or a pipe's name; the port is the real one. */
  readonly text: string;
  /** 0 for a path or a pipe. */
  readonly port: number;
}

export interface Controller extends AsyncDisposable {
  /** Those that could be opened. */
  readonly endpoints: readonly ControllerEndpoint[];
  /** Their descriptors, in the same order. */
  readonly descriptors: readonly number[];
  /** The sockets are another process's, too: disposing leaves the path of a Unix socket where it is. */
  handOver(): void;
}

/** How long requests in flight may take to finish after disposal; one of them may be the cause of it. */
const GRACE_MS = 3_000;
const SWEEP_MS = 50;

/**
 * Opens every listener; one that fails is logged and left out. Throws `ConfigError` where an empty secret would open
 * the Controller to other machines: the caller makes one up first. Disposal stops listening at once, ends WebSockets
 * and streams, and resolves without waiting for requests in flight, which get a short grace.
 */
export async function openController(
  options: ControllerOptions,
  control: Control,
  log: Log,
): Promise<Controller> {
  const { http, https, unix, pipe } = options.listeners;
  refuseMissingSecret(options);
  await using undo = new AsyncDisposableStack();
  const endpoints: ControllerEndpoint[] = [];
  const descriptors: number[] = [];
  const paths = new OwnPaths();
  undo.use(paths);
  let application: Promise<Application> | null = null;
  undo.defer(async () => (await application?.catch(() => null))?.[Symbol.dispose]());
  const ours = { ...options, hosts: [...options.hosts, ...controllerHosts(options)] };
  const load = (): Promise<Application> => (application ??= loadApplication(ours, control, log));
  const open = async (kind: Transport["kind"], at: string, start: Start): Promise<void> => {
    await using parts = new AsyncDisposableStack();
    try {
      const { endpoint, fd } = await openOne({ kind, at }, start, { load, log, parts });
      endpoints.push(endpoint);
      descriptors.push(fd);
      undo.use(parts.move());
      log.info(`controller: ${kind} on ${endpoint.text}`);
    } catch (error) {
      log.error(`controller: cannot listen on ${kind} ${at}: ${listenFault(error)}`);
    }
  };
  const tcp = (listener: TcpListener) => async (server: Server) => textOf(await listenTcp(server, listener));
  if (http) await open("http", hostPort(http), { listen: tcp(http) });
  if (https) await open("https", hostPort(https), { listen: tcp(https), tls: https.tls });
  if (unix)
    await open("unix", unix.path, {
      listen: async (server) => {
        if (unix.fd !== undefined) await listenBy(server, unix.fd);
        if (unix.fd !== undefined || (await listenUnix(server, unix.path))) paths.add(unix.path);
        return [unix.path, 0];
      },
    });
  if (pipe)
    await open("pipe", pipe.name, {
      listen: (server) => listenPipe(server, pipe.name).then(() => [pipe.name, 0]),
    });
  const owned = undo.move();
  return {
    endpoints,
    descriptors,
    handOver: () => paths.leave(),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Paths of Unix sockets that go with their servers. */
class OwnPaths implements Disposable {
  readonly #paths = new Set<string>();

  add(path: string): void {
    this.#paths.add(path);
  }

  leave(): void {
    this.#paths.clear();
  }

  [Symbol.dispose](): void {
    for (const path of this.#paths) rmSync(path, { force: true });
  }
}

async function loadApplication(options: AppOptions, control: Control, log: Log): Promise<Application> {
  const { Application } = await import("#api/index.ts");
  return new Application(options, control, log);
}

function refuseMissingSecret({ secret, listeners: { http, https } }: ControllerOptions): void {
  const open = [http, https].find((listener) => listener !== undefined && !isLoopbackHost(listener.host));
  if (secret !== "" || open === undefined) return;
  throw new ConfigError(`secret: must not be empty while the Controller listens on ${hostPort(open)}`);
}

interface Start {
  listen(server: Server): Promise<readonly [text: string, port: number]>;
  readonly tls?: TlsOptions;
}

interface Parts {
  /** With the first request. */
  readonly load: () => Promise<Application>;
  readonly log: Log;
  readonly parts: AsyncDisposableStack;
}

async function openOne(
  { kind, at }: { readonly kind: Transport["kind"]; readonly at: string },
  start: Start,
  { load, log, parts }: Parts,
): Promise<{ readonly endpoint: ControllerEndpoint; readonly fd: number }> {
  const transport: Transport = {
    kind,
    isLocal: kind === "unix" || kind === "pipe" || isLoopbackHost(hostOf(at)),
  };
  const upgrades: Upgrades = new WeakMap();
  const answering = new Answering(async () => (await load()).openFor(transport, upgrades), log);
  const { serve } = answering;
  const bounded: Serve = (request, response) => {
    giveUpWhenStuck(response);
    serve(request, response);
  };
  const made = start.tls === undefined ? null : await openTlsServer(start.tls, bounded, log);
  if (made !== null) parts.use(made);
  const server = made?.server ?? plainServer(bounded);
  server.maxConnections = MAX_CONNECTIONS;
  server.on("upgrade", takeUpgrade(upgrades, serve));
  server.on("checkContinue", bounded as never); // the body is asked for when it is read, not before the credentials
  parts.defer(stopper(server, answering));
  const [text, port] = await start.listen(server);
  server.on("error", (error) => log.error(`controller: ${kind}: ${messageOf(error)}`));
  return { endpoint: { kind, text, port }, fd: descriptorOf(server) };
}

function stopper(server: HttpServer | Http2SecureServer, answering: Answering): () => Promise<void> {
  const sockets = tracked<Socket>(server, "connection");
  const sessions = tracked<ServerHttp2Session>(server, "session");
  return async () => {
    if (!server.listening) return;
    server.close();
    answering[Symbol.dispose]();
    for (const session of sessions) session.close();
    const until = performance.now() + GRACE_MS;
    const sweep = setInterval(() => {
      if ("closeIdleConnections" in server) server.closeIdleConnections();
      if (performance.now() > until) for (const socket of sockets) socket.destroy();
      if (sockets.size === 0) clearInterval(sweep);
    }, SWEEP_MS).unref();
    await setImmediate(); // the descriptor is closed by then, and the port free
  };
}

function tracked<T extends EventEmitter>(server: Server, event: string): ReadonlySet<T> {
  const alive = new Set<T>();
  server.on(event, (one: T) => {
    alive.add(one);
    one.once("close", () => alive.delete(one));
  });
  return alive;
}

function controllerHosts({ listeners: { http, https } }: ControllerOptions): readonly string[] {
  return [http, https].flatMap((listener) =>
    listener === undefined || listener.host === "" ? [] : [listener.host],
  );
}

function textOf({ address, family, port }: AddressInfo): readonly [string, number] {
  return [family === "IPv6" ? `[${address}]:${port}` : `${address}:${port}`, port];
}

function hostPort({ host, port }: TcpListener): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function hostOf(at: string): string {
  return at.slice(0, at.lastIndexOf(":"));
}
