import type { Config, ListenerConfig } from "#config/config.ts";
import type { TunnelConfig } from "#config/tunnels.ts";
import { messageOf } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { HostMemory } from "#core/host-memory.ts";
import type { Accept, Access, Inbound, InboundEnv, ManagedInbound, User } from "#core/inbound.ts";
import type { LiveConnections } from "#core/live.ts";
import type { Log } from "#core/log.ts";
import type { Dialer } from "#core/outbound.ts";
import type { TlsProvider } from "#core/tls.ts";
import type { KeepAlive } from "#net/dial/keep-alive.ts";
import type { SocketPool } from "#net/listen/socket-pool.ts";
import { markDescriptor } from "#platform/portable.ts";
import { tunnel, type TunnelOptions } from "#protocols/tunnel/index.ts";
import { accessKey, openAccess } from "./access.ts";
import { LeaseBook } from "./leases.ts";

export interface InboundsEnv {
  readonly sockets: SocketPool;
  readonly live: LiveConnections;
  readonly accept: Accept;
  readonly files: SafeFiles;
  /** DIRECT of the runtime in force: a listener may outlive the one that opens it. */
  readonly dialer: Dialer;
  /** An outbound or group of the runtime in force. */
  readonly through: (name: string) => Dialer;
  readonly tls: TlsProvider;
  readonly log: Log;
  readonly nowMs: () => number;
  readonly memory: HostMemory;
  /** True at the start: a listener that cannot be opened is logged and the others run. False: the reload fails. */
  readonly tolerant: boolean;
}

/** One running listener, shared by the runtimes whose configurations of it are equal. */
interface RunningListener {
  readonly key: string;
  readonly inbound: Inbound;
  readonly leases: LeaseBook;
  /** Opened without users: they come from elsewhere, and change. */
  readonly isManaged: boolean;
}

/** One that other users may be told. */
export type ClosableListener = Omit<RunningListener, "leases">;

/** The listeners of one runtime. What a reload did not change is taken over from the runtime before, running. */
export class Inbounds {
  readonly held: ReadonlyMap<string, RunningListener>;
  /** Addresses that are taken, so that nothing else of the same configuration listens there. */
  readonly claims: Set<string>;
  readonly #fresh: ReadonlySet<RunningListener>;

  private constructor(
    held: ReadonlyMap<string, RunningListener>,
    fresh: ReadonlySet<RunningListener>,
    claims: Set<string>,
  ) {
    this.held = held;
    this.#fresh = fresh;
    this.claims = claims;
  }

  /** Throws `ConfigError`, with nothing left open, where a listener cannot be opened and `tolerant` is false. */
  static async open(config: Config, previous: Inbounds | null, env: InboundsEnv): Promise<Inbounds> {
    await using undo = new AsyncDisposableStack();
    const access = openAccess(config);
    const { keepAlive, routingMark } = config.general;
    const guard = [accessKey(config), keepAlive, routingMark, config.general.relay];
    const held = new Map<string, RunningListener>();
    const fresh = new Set<RunningListener>();
    const claims = new Set<string>();
    const managed = new Set(config.svc?.managedListeners);
    for (const written of [...config.listeners, ...config.tunnels.map(tunnelListener)]) {
      const isManaged = managed.has(written.name);
      const listener = isManaged ? withoutUsers(written) : written;
      const key = unusedKey(held, JSON.stringify([listenerKey(listener), guard, isManaged]));
      const kept = heldBy(previous).get(key);
      if (kept !== undefined) {
        kept.leases.claimFor(claims);
        held.set(key, kept);
      } else {
        const made = await openListener(listener, key, { access, claims, keepAlive, routingMark }, env);
        if (made === null) continue;
        undo.defer(() => closeListener(made));
        const own = { ...made, isManaged };
        held.set(key, own);
        fresh.add(own);
      }
    }
    undo.move();
    return new Inbounds(held, fresh, claims);
  }

  get all(): readonly Inbound[] {
    return [...this.held.values()].map(({ inbound }) => inbound);
  }

  /** Those whose users are managed. */
  get managed(): readonly ManagedInbound[] {
    return managedOf([...this.held.values()]);
  }

  /** New connections arrive here from now on. Synchronous: one turn of the event loop swaps everything. */
  activate(): void {
    for (const { leases } of this.#fresh) leases.activate();
  }

  /**
   * Closes the sessions here of users of the file that the listener of the same name in `next` no longer admits. Does
   * nothing for listeners that are gone, nor for listeners with managed users, whose changes close sessions themselves.
   */
  closeRemovedUsers(next: Inbounds): void {
    for (const one of this.held.values()) next.closeRemovedUsersOf(one);
  }

  /** The same for one listener, those here being the next ones. */
  closeRemovedUsersOf({ inbound, key, isManaged }: ClosableListener): void {
    const { written = [], replaceUsers }: Partial<ManagedInbound> = inbound;
    const successor = this.#writtenFor(inbound);
    if (isManaged || this.held.has(key) || successor === null) return;
    const known = new Set(successor.map(credentialKey));
    const staying = written.filter((user) => known.has(credentialKey(user)));
    if (staying.length < written.length) replaceUsers?.(staying);
  }

  /** Those that the next runtime did not take over; all of them where there is none. */
  leaving(next: Inbounds | null): readonly RunningListener[] {
    return [...this.held.values()].filter((held) => heldBy(next).get(held.key) !== held);
  }

  #writtenFor({ name, type }: Inbound): readonly User[] | null {
    for (const { inbound, isManaged } of this.held.values())
      if (!isManaged && inbound.name === name && inbound.type === type)
        return (inbound as Partial<ManagedInbound>).written ?? null;
    return null;
  }

  /**
   * Closes the listeners that the next runtime did not take over; all of them when there is none. Accepted sessions
   * continue.
   */
  async retire(next: Inbounds | null): Promise<void> {
    await Promise.all(this.leaving(next).map(closeListener));
  }

  /** Undoes `open` of a runtime that will not run: closes only what it made itself. */
  async abandon(): Promise<void> {
    await Promise.all([...this.#fresh].map(closeListener));
  }
}

export function managedOf(listeners: readonly ClosableListener[]): readonly ManagedInbound[] {
  const own = listeners.filter(({ isManaged }) => isManaged);
  return own.map(({ inbound }) => inbound as ManagedInbound);
}

/** Listeners that are equal to the last word (tunnels at port 0) are still several. */
function unusedKey(held: ReadonlyMap<string, RunningListener>, key: string): string {
  let unused = key;
  for (let again = 2; held.has(unused); again++) unused = `${key} ${again}`;
  return unused;
}

function credentialKey({ credential, flow }: User): string {
  return JSON.stringify([credential, flow]);
}

function heldBy(inbounds: Inbounds | null): ReadonlyMap<string, RunningListener> {
  return inbounds?.held ?? new Map();
}

async function closeListener({
  inbound,
  leases,
}: Pick<RunningListener, "inbound" | "leases">): Promise<void> {
  await leases[Symbol.asyncDispose](); // completes handshakes in progress
  await inbound[Symbol.asyncDispose]();
}

/** A credential of the file must not be valid even for a moment. */
export function withoutUsers(listener: ListenerConfig): ListenerConfig {
  const { protocol, options } = listener;
  return { ...listener, options: protocol.users?.emptied(options) ?? options };
}

function listenerKey({
  name,
  protocol,
  hosts,
  ports,
  ruleList,
  target,
  routingMark,
  options,
}: ListenerConfig): unknown {
  return [name, protocol.type, hosts, ports, ruleList, target, routingMark, options];
}

/** An item of `tunnels` is a tunnel listener without a name of its own. */
function tunnelListener({ networks, listen, target, proxy }: TunnelConfig): ListenerConfig {
  return {
    name: `tunnel ${listen.ip}:${listen.port}`,
    protocol: tunnel,
    hosts: [listen.ip],
    ports: [listen.port],
    ruleList: null,
    target: proxy,
    routingMark: 0,
    options: { network: [...networks], target: hostPortText(target) } satisfies TunnelOptions,
  };
}

function hostPortText({ host, port }: TunnelConfig["target"]): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** What all listeners of a configuration have in common. */
interface Common {
  readonly access: Access;
  readonly claims: Set<string>;
  readonly keepAlive: KeepAlive;
  readonly routingMark: number;
}

async function openListener(
  listener: ListenerConfig,
  key: string,
  { access, claims, keepAlive, routingMark: commonMark }: Common,
  { sockets, live, accept, files, dialer, through, tls, log, nowMs, memory, tolerant }: InboundsEnv,
): Promise<Omit<RunningListener, "isManaged"> | null> {
  const { name, protocol, hosts, ports, ruleList, target, routingMark, options } = listener;
  const configure = routingMark === 0 ? {} : { configure: (fd: number) => markDescriptor(fd, routingMark) };
  const leases = new LeaseBook(sockets, { owner: name, hosts, ports, claims, ...configure });
  const env: InboundEnv = {
    name,
    accept,
    access,
    unauthenticated: sockets.unauthenticated,
    log,
    files,
    tls,
    nowMs,
    memory,
    dialer,
    through,
    ruleList,
    target,
    routingMark: routingMark || commonMark,
    listenTcp: (options) => leases.listenTcp({ ...options, keepAlive, context: { name, ruleList, target } }),
    listenUdp: (on) => leases.listenUdp(on),
    listenTransparentUdp: (on) => leases.listenTransparentUdp(on),
    endSessions: (users) =>
      void live.closeAll(
        ({ metadata: { inbound } }) =>
          inbound.name === name && inbound.user !== null && users.has(inbound.user),
      ),
  };
  try {
    if (protocol.inbound === undefined) throw new Error(`${protocol.type} is no listener type`);
    const inbound = await protocol.inbound.open(options as never, env);
    return { key, inbound, leases };
  } catch (error) {
    await leases[Symbol.asyncDispose]();
    const text = `listener ${name}: ${messageOf(error).replace(`listener ${name}: `, "")}`;
    if (!tolerant) throw new Error(text, { cause: error });
    log.error(text);
    return null;
  }
}
