import { ConfigError, messageOf } from "#core/errors.ts";
import { NO_EVENTS, type StoreEvents, type UserEvents } from "#core/events.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import type { LiveConnections } from "#core/live.ts";
import type { Log } from "#core/log.ts";
import type { Ledger } from "#core/meter.ts";
import type { Protocol } from "#core/protocol.ts";
import type { Session } from "#core/session.ts";
import type { ClientForms } from "#core/share-link.ts";
import type { UserAdmin, UsersControl, WaitingUsers } from "#core/users.ts";
import type { BootClock } from "#lib/steady-time.ts";
import { type AdmittedSession, passGate } from "./admission.ts";
import type { OpenFleet } from "./fleet-link.ts";
import { Manager } from "./manager.ts";
import type { UsersSettings } from "./settings.ts";
import { meterUsers } from "./user-meter.ts";
import { openSupervisedStore } from "#store/supervised-store.ts";
import type { OpenedStore, SupervisedOptions } from "#store/opened-store.ts";

export interface UsersEnv {
  readonly log: Log;
  /** Unix time. */
  readonly nowMs: () => number;
  /** Never goes back. Absent: the clock of the process. */
  readonly monotonicMs?: () => number;
  /** Absent: the system has none that counts its sleep. */
  readonly boot?: BootClock | null;
  readonly live: LiveConnections;
  /** Absent: nothing is reported. */
  readonly events?: UserEvents & StoreEvents;
  /** All that this build speaks. */
  readonly protocols: readonly Protocol[];
  /** A share link in the forms that profiles of clients are made of. Absent: in none. */
  readonly formsOf?: (link: string) => ClientForms;
  /** Absent: this build takes part in no fleet. */
  readonly openFleet?: OpenFleet;
  /** Absent: in a thread of its own. */
  readonly openStore?: (options: SupervisedOptions) => Promise<OpenedStore>;
}

const noFleet: OpenFleet = () => Promise.reject(new ConfigError("svc.fleet: fleets are not built in here"));

/** A crash may cost a second of the counters: less than that, so that a late timer and the medium have their time. */
const CHECKPOINT_MS = 800;
/** How late a user past a limit is disconnected at most, besides the time that it takes. */
const WATCH_MS = 200;

/** What one user has moved, as another process of weir is told. */
export interface UserTotals {
  readonly listener: string;
  readonly id: string;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
}

type UserName = readonly [listener: string, id: string, ...unknown[]];

function barKey(listener: string, id: string): string {
  return `${listener}\0${id}`;
}

/** Managed users for the life of the program; what is managed, and in which file, changes with the configuration. */
export class Users implements UsersControl {
  readonly #env: UsersEnv;
  #manager: Manager | null = null;
  #waiting: WaitingUsers | null = null;
  #inbounds: () => Iterable<ManagedInbound> = () => [];
  /** The file of the manager before has been let go of. */
  #left: Promise<void> = Promise.resolve();
  #timers: readonly NodeJS.Timeout[] = [];
  /** Another process has the state file. */
  #isLent = false;
  /** While it has: users whom it does not admit. */
  readonly #barred = new Set<string>();
  readonly #monotonicMs: () => number;

  constructor(env: UsersEnv) {
    this.#env = env;
    this.#monotonicMs = env.monotonicMs ?? (() => performance.now());
  }

  get admin(): UserAdmin | null {
    return this.#manager;
  }

  get waiting(): WaitingUsers | null {
    return this.#waiting;
  }

  /** These settings could not be put in force and are tried again; null: they are not. A later `adopt` ends it. */
  wait(settings: UsersSettings | null, reason: string): void {
    this.#waiting = settings === null ? null : { secret: settings.secret, store: settings.store, reason };
  }

  /** The same ledger, with the sessions of managed users metered for their users, too. */
  metering(inner: Ledger): Ledger {
    return meterUsers(inner, {
      counterOf: (listener, user) => this.#manager?.registry.counters.get(listener, user) ?? null,
      originOf: (metadata) => this.#manager?.registry.originOf(metadata) ?? null,
      nowMs: this.#env.nowMs,
      monotonicMs: this.#monotonicMs,
    });
  }

  /** Every session passes here before it is served. A text says why it may not begin. */
  enter(session: Session): AdmittedSession | string {
    const { name, user } = session.metadata.inbound;
    if (this.#barred.size > 0 && user !== null && this.#barred.has(barKey(name, user)))
      return "the user may not connect: the process of weir that has taken over says so";
    return passGate(this.#manager?.registry ?? null, session, this.#monotonicMs(), this.#env.events);
  }

  /**
   * Puts settings in force, null: none. `running` are the listeners, opened without users, that are to serve them;
   * `inbounds` answers at any time with all that were opened so and may carry sessions, the present ones last. Rejects
   * with `ConfigError` or `StoreError` and nothing changed: `running` listeners that serve already keep their users, the
   * others have none. No change of users happens meanwhile, nor in the rest of the turn of the event loop in which this
   * settles.
   */
  async adopt(
    settings: UsersSettings | null,
    running: readonly ManagedInbound[],
    inbounds: () => Iterable<ManagedInbound>,
  ): Promise<void> {
    const work = () => this.#adopt(settings, running, inbounds);
    await (this.#manager === null ? work() : this.#manager.alone(work));
  }

  async #adopt(
    settings: UsersSettings | null,
    running: readonly ManagedInbound[],
    inbounds: () => Iterable<ManagedInbound>,
  ): Promise<void> {
    if (settings === null) this.#leave();
    else
      try {
        await this.#enter(settings, running);
      } catch (error) {
        this.#putBack(running);
        throw error;
      }
    this.#waiting = null;
    this.#inbounds = inbounds;
    const managed = new Set(settings?.listeners.map(({ name }) => name));
    // Sessions of managed users end where their listener is no longer managed.
    this.#empty([...inbounds()].filter(({ name }) => !managed.has(name)));
  }

  /**
   * What has moved is on the medium when it resolves, and nothing is written from then on: another process gets the file.
   * Counting goes on. Rejects with `StoreError`, and with everything as before.
   */
  async release(): Promise<void> {
    await this.flush();
    this.#isLent = true;
  }

  reclaim(): void {
    this.#isLent = false;
    this.#barred.clear();
  }

  /** Of users who have moved bytes that are not in the file. */
  *moved(): Generator<UserTotals> {
    yield* this.#manager?.registry.counters.changed ?? [];
  }

  /** Of all users who are managed. */
  *totals(): Generator<UserTotals> {
    yield* this.#manager?.registry.counters ?? [];
  }

  /** Counts what another process has moved for a user; nothing where the user is no more. */
  count(listener: string, id: string, uploadBytes: number, downloadBytes: number): void {
    const counter = this.#manager?.registry.counters.get(listener, id);
    counter?.count("upload", uploadBytes, this.#env.nowMs());
    counter?.count("download", downloadBytes, this.#env.nowMs());
  }

  /** The process that has the file was asked about `asked`, and does not admit `barred` of them. */
  bar(asked: Iterable<UserName>, barred: Iterable<UserName>): void {
    for (const [listener, id] of asked) this.#barred.delete(barKey(listener, id));
    for (const [listener, id] of barred) this.#barred.add(barKey(listener, id));
  }

  /** May this user connect at present? */
  admits(listener: string, id: string): boolean {
    if (this.#barred.has(barKey(listener, id))) return false;
    const registry = this.#manager?.registry;
    const found = registry?.findAt(listener, id) ?? null;
    return registry !== undefined && found !== null && registry.statusOf(found) === "active";
  }

  /** Writes counters that have moved. */
  async checkpoint(): Promise<void> {
    if (!this.#isLent) await this.#manager?.checkpoint();
  }

  /** What was counted up to now is on the medium when it resolves. Rejects with `StoreError`. */
  async flush(): Promise<void> {
    if (!this.#isLent) await this.#manager?.flush();
  }

  /** Checks which users are past a quota or an end by now, and which are within it again. */
  async watchLimits(): Promise<void> {
    await this.#manager?.watchLimits();
  }

  /** The last byte has been counted: a fleet is told while there is still time to. Never rejects. */
  async leaveFleet(): Promise<void> {
    await this.#manager?.leaveFleet();
  }

  /** The end of the program, after its last session: all is written when it returns, however long the medium takes. */
  close(): void {
    const manager = this.#stop();
    if (!this.#isLent) manager?.closeNow();
  }

  async #enter(settings: UsersSettings, running: readonly ManagedInbound[]): Promise<void> {
    if (this.#manager?.store === settings.store) {
      if (!this.#manager.isInFleetOf(settings))
        throw new ConfigError(
          "svc.fleet: it was changed; that takes a restart (dsn-file is read for every connection)",
        );
      return this.#manager.configure(settings, running);
    }
    await this.#left; // it may have been this file
    const env = {
      formsOf: () => ({ node: null, mihomo: null, singBox: null }),
      openStore: openSupervisedStore,
      boot: null,
      events: NO_EVENTS,
      ...this.#env,
      monotonicMs: this.#monotonicMs,
      inbounds: () => this.#inbounds(),
      onFailure: (error: unknown) => this.#failClosed(error),
    };
    const fresh = await Manager.open(settings, env, this.#env.openFleet ?? noFleet);
    try {
      await fresh.configure(settings, running);
    } catch (error) {
      await fresh.close();
      throw error;
    }
    this.#leave();
    this.#manager = fresh;
    this.#timers = [
      setInterval(() => void this.checkpoint(), CHECKPOINT_MS).unref(),
      setInterval(() => void this.watchLimits(), WATCH_MS).unref(),
    ];
  }

  /** Users whom the refused settings admitted must not stay connected, because nothing counts them. */
  #putBack(running: readonly ManagedInbound[]): void {
    const serving = new Set(this.#manager === null ? [] : this.#inbounds());
    this.#empty(running.filter((inbound) => !serving.has(inbound)));
    try {
      this.#manager?.putBack(running.filter((inbound) => serving.has(inbound)));
    } catch (error) {
      this.#failClosed(error);
    }
  }

  /** Ends the management of all users; the file is written and closed behind it. */
  #leave(): void {
    const closed = this.#stop()?.close();
    if (closed !== undefined) this.#left = closed;
  }

  #stop(): Manager | null {
    for (const timer of this.#timers) clearInterval(timer);
    const manager = this.#manager;
    this.#manager = null;
    return manager;
  }

  #failClosed(error: unknown): void {
    this.#env.log.error(`managed users: no user is let in until the next reload: ${messageOf(error)}`);
    this.#empty([...this.#inbounds()]);
    this.#leave();
  }

  #empty(inbounds: readonly ManagedInbound[]): void {
    for (const inbound of inbounds) {
      try {
        inbound.replaceUsers([]);
      } catch (error) {
        this.#env.log.error(`listener ${inbound.name}: its users cannot be taken away: ${messageOf(error)}`);
      }
    }
  }
}
