import { randomBytes } from "node:crypto";
import { chmodSync, lstatSync, readFileSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import type { Server } from "node:net";
import { isAbsolute, join } from "node:path";
import type { Controller, ControllerEndpoint, ControllerOptions } from "#api/open-controller.ts";
import { isLoopbackHost } from "#api/hosts.ts";
import type { Config } from "#config/config.ts";
import type { Control } from "#core/control.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { Endpoint } from "#core/session.ts";
import type { Host } from "#host/host.ts";
import { itemAt } from "#lib/at.ts";
import { parseHostPort } from "#net/address/address-fields.ts";
import { parseIp } from "#net/address/ip.ts";
import type { InheritedSockets, ListeningSocket } from "#net/listen/inherited-sockets.ts";
import { makeFolder } from "#platform/make-folder.ts";
import { markDescriptor } from "#platform/portable.ts";
import { SECRET_FILE } from "#host/file-guard.ts";
import { builtInUiFolder, externalUiFolder } from "#host/ui-folder.ts";
import { descriptorOf } from "#core/handover.ts";

/**
 * Holds the running Controller and makes it anew when its settings change. The folder `api`, with its HTTP framework and its
 * schemas, is a third of the program: a small part of it listens, behind all other listeners, and loads the others with the
 * first request.
 */
export class ControllerSlot implements AsyncDisposable {
  readonly #control: Control;
  readonly #host: Host;
  #running: Controller | null = null;
  #options: ControllerOptions | null = null;
  #settings = "";

  constructor(control: Control, host: Host) {
    this.#control = control;
    this.#host = host;
  }

  get endpoints(): readonly ControllerEndpoint[] {
    return this.#running?.endpoints ?? [];
  }

  get isOpen(): boolean {
    return (this.#options?.secret ?? "") === "";
  }

  /** Where it listens and by which descriptor, as `InheritedSockets` of another process takes it. */
  get listening(): readonly ListeningSocket[] {
    const { endpoints = [], descriptors = [] } = this.#running ?? {};
    const { http, https, unix } = this.#options?.listeners ?? {};
    const keys: Readonly<Record<ControllerEndpoint["kind"], string | null>> = {
      http: http === undefined ? null : tcpKey(http.host, http.port),
      https: https === undefined ? null : tcpKey(https.host, https.port),
      unix: unix === undefined ? null : unixKey(unix.path),
      pipe: null,
    };
    return endpoints.flatMap(({ kind }, at) => {
      const key = keys[kind];
      return key === null ? [] : [{ key, fd: itemAt(descriptors, at), endpoint: null }];
    });
  }

  /** Another process listens by the same sockets: paths stay where they are when this one closes. */
  handOver(): void {
    this.#running?.handOver();
  }

  /**
   * A server that cannot be opened is logged; the other parts of the program do not depend on it. A server that runs
   * already is kept in that case, so that an operator who reloads remotely is not locked out.
   */
  async apply(config: Config): Promise<void> {
    const settings = JSON.stringify([config.controller, config.tls]);
    if (settings === this.#settings) return;
    const before = { options: this.#options, settings: this.#settings };
    try {
      const options = controllerOptions(config, this.#host, this.#control);
      if ((await this.#replace(options, settings)) || before.options === null) return;
      this.#host.log.error("controller: it goes on with the earlier settings");
    } catch (error) {
      this.#host.log.error(`controller: ${messageOf(error)}`);
    }
    if (before.options !== null && before.options !== this.#options)
      await this.#replace(before.options, before.settings);
  }

  /** True where all of it could be opened. */
  async #replace(options: ControllerOptions, settings: string): Promise<boolean> {
    const { openController } = await import("#api/open-controller.ts");
    await this[Symbol.asyncDispose]();
    this.#running = await openController(options, this.#control, this.#host.log);
    this.#host.sockets.listening.setController(this.#running.endpoints.flatMap(endpointOf));
    this.#options = options;
    this.#settings = settings;
    return this.#running.endpoints.length === Object.keys(options.listeners).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#host.sockets.listening.setController([]);
    await this.#running?.[Symbol.asyncDispose]();
    this.#running = this.#options = null;
    this.#settings = "";
  }
}

function controllerOptions(config: Config, host: Host, control: Control): ControllerOptions {
  const { controller, tls } = config;
  const mark = controller.externalControllerRoutingMark;
  const listen = listenWith(host.inherited, mark);
  const http = listenerOf(controller.externalController);
  const https = listenerOf(controller.externalControllerTls);
  const unix = controller.externalControllerUnix;
  const pipe = controller.externalControllerPipe;
  const reachable = [http, https].some((listener) => listener !== null && !isLoopbackHost(listener.host));
  return {
    listeners: {
      ...(http === null ? {} : { http: { ...http, listen } }),
      ...(https === null ? {} : { https: { ...https, listen, tls: { ...tls, files: host.files } } }),
      ...(unix === "" ? {} : { unix: unixListener(isAbsolute(unix) ? unix : join(host.home, unix), host) }),
      ...(pipe === "" ? {} : { pipe: { name: pipe } }),
    },
    secret: controller.secret === "" && reachable ? keptSecret(host) : controller.secret,
    cors: {
      ...controller.externalControllerCors,
      isDefault: !controller.saysEveryOrigin && isEvery(controller),
    },
    hosts: [],
    access: host.journal,
    svcSecret: () => host.journal.secret,
    fleet: () => host.users.admin?.fleet ?? null,
    former: (path) => host.users.admin?.formerSubscription(path) ?? null,
    async mounts(transport, subscribers) {
      const { adminRoutes, journalRoutes, subscriptionRoutes } = await import("#api/index.ts");
      return [
        ...adminRoutes(host.users, control, transport, host.journal),
        ...journalRoutes(host.journal, transport, subscribers),
        ...subscriptionRoutes(host.users, host.log),
      ];
    },
    uiFolder: externalUiFolder(config, host.home) ?? builtInUiFolder(),
    uiIsOurs: controller.externalUi === "",
    dohPath: controller.externalDohServer.startsWith("/") ? controller.externalDohServer : null,
  };
}

const tcpKey = (host: string, port: number): string =>
  `controller ${host === "localhost" ? "127.0.0.1" : host}|${port}`;
const unixKey = (path: string): string => `controller ${path}`;

/** Listens as usual, or by what was handed over, and marks what answers (`external-controller-routing-mark`). */
function listenWith(inherited: InheritedSockets, mark: number) {
  return async (server: Server, host: string, port: number): Promise<void> => {
    const fd = inherited.take(tcpKey(host, port))?.fd;
    server.listen(fd === undefined ? { host, port } : { fd });
    await once(server, "listening");
    if (mark !== 0) markDescriptor(descriptorOf(server), mark);
  };
}

function unixListener(path: string, { inherited }: Host): { readonly path: string; readonly fd?: number } {
  const fd = inherited.take(unixKey(path))?.fd;
  return fd === undefined ? { path } : { path, fd };
}

/** By the list, or for want of one. */
function isEvery({ externalControllerCors: { allowOrigins } }: Config["controller"]): boolean {
  return allowOrigins.length === 0 || allowOrigins.includes("*");
}

/** None for a path or a pipe. */
function endpointOf({ text, port }: ControllerEndpoint): readonly Endpoint[] {
  const ip = port === 0 ? null : parseIp(text.slice(0, text.lastIndexOf(":")));
  return ip === null ? [] : [{ ip, port }];
}

/** `:9090` listens on every address. */
function listenerOf(text: string): { readonly host: string; readonly port: number } | null {
  const parsed = text === "" ? null : parseHostPort(text);
  return parsed === null ? null : { host: parsed.host === "" ? "::" : parsed.host, port: parsed.port };
}

/** An old profile without a secret still starts, but stays shut: the secret lies owner-only in the home directory. */
function keptSecret({ home, log }: Host): string {
  const file = join(home, SECRET_FILE);
  const stats = lstatSync(file, { throwIfNoEntry: false });
  if (stats?.isFile() === false) throw new ConfigError(`${file} must be a regular file, with a secret in it`);
  const known = stats === undefined ? "" : readFileSync(file, "utf8").trim();
  log.warning(
    `secret: it is empty while the Controller can be reached from other machines; the secret in ${file} is asked for`,
  );
  if (known !== "") return known;
  const made = newSecret();
  makeFolder(home);
  writeFileSync(file, `${made}\n`, { mode: 0o600, flag: stats === undefined ? "wx" : "w", flush: true });
  chmodSync(file, 0o600);
  return made;
}

/** 128 random bits as text. */
export function newSecret(): string {
  return randomBytes(16).toString("hex");
}
