/** A running node of a fleet: joins its parts, for the manager of users. */
import type { Client } from "pg";
import { ConfigError } from "#core/errors.ts";
import type { FleetCounts } from "#core/fleet.ts";
import type { Changes, Shared } from "#users/changes.ts";
import type { UserCounter } from "#users/counters.ts";
import type { FleetContext, FleetLink } from "#users/fleet-link.ts";
import { LEDGER } from "#users/records.ts";
import type { ManagedListener } from "#users/settings.ts";
import { UNKNOWN_ID, type UserBook } from "#users/user-book.ts";
import { VERSION } from "#version.ts";
import { Beat } from "./beat.ts";
import { type ArrivalEnv, bookFromFleet, bookWithout, publishMissing } from "./arrival.ts";
import { type FleetError, reasonOf } from "./errors.ts";
import { FleetConnection } from "./fleet-connection.ts";
import { FleetRepository } from "./fleet-repository.ts";
import { FleetViews } from "./fleet-views.ts";
import { Follower } from "./follower.ts";
import { type NodeIdentity, raiseEpoch } from "./identity.ts";
import { Leases } from "./leases.ts";
import { Ledger } from "./ledger.ts";
import { Membership } from "./membership.ts";
import { TokenSeal } from "./seal.ts";
import { Slots } from "./slots.ts";
import { Snapshot } from "./snapshot.ts";
import { databaseOptions } from "./source.ts";
import { CUT_MS, Traffic } from "./traffic.ts";
import { within } from "./within.ts";

/** What a start waits for the database: with users in the state file to serve meanwhile, and with none. */
const START_MS = { known: 500, unknown: 2_000 };
/** What a listener that comes later waits for it. */
const ARRIVAL_MS = 1_000;
/** What leaving waits for it, twice. */
const LEAVE_MS = 1_500;
/** Between two looks for listeners that the fleet does not have, and for which this node has no users. */
const MISSED_MS = 10_000;
/** A change holds up others of its listener. */
const STATEMENT_MS = 3_000;

/** Settles when the state file has this process's epoch; the database is connected to afterwards. */
export async function openFleet(context: FleetContext): Promise<FleetLink> {
  databaseOptions(context.fleet, process.env); // throws where it can never be had
  return new FleetMember(context, await raiseEpoch(context.opened));
}

class FleetMember implements FleetLink {
  readonly repository: FleetRepository;
  readonly admin: FleetViews;
  readonly #context: FleetContext;
  readonly #seal: TokenSeal;
  /** Of changes and views. */
  readonly #connection: FleetConnection;
  /** Of the ledger alone. */
  readonly #bulk: FleetConnection;
  readonly #membership: Membership;
  readonly #snapshot: Snapshot;
  readonly #ledger: Ledger;
  readonly #traffic: Traffic;
  readonly #leases: Leases;
  readonly #slots: Slots;
  readonly #beat: Beat;
  readonly #timer: NodeJS.Timeout;
  readonly #startedMs: number;
  #missedAtMs = -Infinity;
  #refused: FleetError | null = null;
  #follower: Follower | null = null;
  #left: Promise<void> | null = null;
  #isSending = false;
  #size = 1;

  constructor(context: FleetContext, identity: NodeIdentity) {
    const { env, settings, fleet, opened, registry, local } = context;
    const { log, nowMs, monotonicMs } = env;
    this.#context = context;
    this.#startedMs = monotonicMs();
    this.#seal = new TokenSeal(settings.secret);
    this.#snapshot = new Snapshot(opened.store, registry, log);
    const options = () => databaseOptions(fleet, process.env);
    this.#connection = new FleetConnection(() => ({ ...options(), statementTimeoutMs: STATEMENT_MS }));
    this.#bulk = new FleetConnection(options);
    this.#ledger = new Ledger(identity.epoch, opened.records.get(LEDGER) ?? []);
    const clocks = { log, nowMs, monotonicMs };
    const { store } = opened;
    const written = { identity, ledger: this.#ledger, store, registry, connection: this.#bulk };
    this.#traffic = new Traffic({ ...written, ...clocks });
    this.#leases = new Leases({
      identity,
      registry,
      connection: this.#bulk,
      log,
      nowMs,
      monotonicMs,
      isUp: () => this.#membership.state.isUp,
      onPartition: fleet.onPartition,
      settle: () => this.#traffic.settle(),
    });
    const isUp = () => this.#membership.state.isUp;
    this.#slots = new Slots({ identity, registry, connection: this.#bulk, log, monotonicMs, isUp });
    this.#beat = new Beat({
      identity,
      registry,
      address: fleet.address,
      live: env.live,
      inbounds: env.inbounds,
      monotonicMs,
      measured: () => ({ ...this.#traffic.lastMinute, unacknowledged: this.#ledger.size }),
      onNodes: (nodes) => {
        this.#size = nodes.length;
        this.admin.take(nodes);
      },
      wake: () => this.#membership.wake(),
    });
    this.repository = new FleetRepository({
      local,
      snapshot: this.#snapshot,
      seal: this.#seal,
      connection: this.#connection,
      follower: () => this.#demandFollower(),
      awayBecause: () => (this.#membership.state.isUp ? null : this.#membership.state.reason),
      nowMs,
      node: fleet.node,
      onChanged: () => this.#membership.wake(),
    });
    this.admin = new FleetViews({
      self: fleet.node,
      selfId: identity.nodeId,
      connection: this.#connection,
      database: () => this.#membership.state,
      registry,
      monotonicMs,
      nowMs,
      counts: () => this.#counts(),
      refresh: () => this.#traffic.refresh(),
      settle: () => this.#traffic.settle(),
    });
    this.#membership = new Membership({
      options,
      identity,
      seal: this.#seal,
      about: { name: fleet.node, address: fleet.address, labels: fleet.labels, version: VERSION },
      log,
      nowMs,
      size: () => this.#size,
      round: (client) => this.#round(client),
      onEntered: () => {
        this.#beat.begin();
        this.#slots.tellAll();
      },
      onRefused: (error) => {
        this.#refused = error;
        if (registry.listeners.size > 0) env.onFailure(error); // else `bookOf` says it
      },
    });
    this.#timer = setInterval(() => void this.#account(), CUT_MS).unref();
  }

  follow(shared: Shared, changes: Changes): void {
    this.#follower = new Follower({
      shared,
      changes,
      local: this.#context.local,
      snapshot: this.#snapshot,
      seal: this.#seal,
      onApplied: (isWhole) => {
        if (isWhole) this.#traffic.forgetTotals();
        this.#leases.attach();
        this.#membership.wake();
      },
    });
  }

  note(counters: readonly UserCounter[]): void {
    this.#traffic.note(counters);
  }

  distrust(): void {
    this.#snapshot.distrust();
  }

  async bookOf(listener: ManagedListener, known: UserBook | null): Promise<UserBook> {
    const { env } = this.#context;
    const { opened, tried } = this.#membership;
    const [startMs, awaited] = known === null ? [START_MS.unknown, opened] : [START_MS.known, tried];
    const leftMs = Math.max(0, startMs - (env.monotonicMs() - this.#startedMs));
    await within(leftMs, awaited);
    if (this.#refused !== null) throw new ConfigError(`svc.fleet: ${this.#refused.message}`);
    if (!this.#membership.state.isUp) return bookWithout(listener, known, env.log);
    const withinMs = Math.max(leftMs, ARRIVAL_MS);
    return bookFromFleet((work) => this.#connection.run(work), listener, known, {
      env: this.#about,
      withinMs,
    });
  }

  get #about(): ArrivalEnv {
    const { env, registry, fleet } = this.#context;
    return { node: fleet.node, seal: this.#seal, registry, log: env.log, nowMs: env.nowMs };
  }

  leave(): Promise<void> {
    return (this.#left ??= this.#leave());
  }

  async #leave(): Promise<void> {
    clearInterval(this.#timer);
    this.#leases[Symbol.dispose]();
    this.#slots[Symbol.dispose]();
    await this.#traffic.close(); // asked of the file in this turn, because it may be closed in the next
    if (this.#membership.state.isUp) {
      const told = this.#traffic
        .send()
        .then(() => this.#leases.bringBack())
        .then(() => this.#slots.leave());
      await within(LEAVE_MS, Promise.allSettled([told]));
    }
    await within(LEAVE_MS, this.#membership.leave());
    this.#connection[Symbol.dispose]();
    this.#bulk[Symbol.dispose]();
  }

  /** To the ledger and on to the database. Never rejects. */
  async #account(): Promise<void> {
    await this.#traffic.cut();
    if (!this.#membership.state.isUp || this.#isSending) return;
    this.#isSending = true;
    await this.#traffic.send().catch((error: unknown) => {
      this.#context.env.log.debug(() => `fleet: the ledger waits: ${reasonOf(error)}`);
    });
    this.#isSending = false;
  }

  /** Of the connection on which the node lives. Rejects as the database does. */
  async #round(client: Client): Promise<void> {
    await this.#publishMissing(client);
    await this.#follower?.followAll((work) => work(client));
    await this.#beat.run(client);
  }

  /** Listeners that were opened without the database; those that it has come with the round itself. */
  async #publishMissing(client: Client): Promise<void> {
    const { registry, env } = this.#context;
    if (env.monotonicMs() - this.#missedAtMs < MISSED_MS) return;
    const missed = [...registry.listeners.values()].filter(
      ({ name }) => registry.books.get(name)?.id === UNKNOWN_ID,
    );
    if (missed.length === 0) return;
    this.#missedAtMs = env.monotonicMs();
    for (const listener of missed) await publishMissing(client, listener, this.#about);
  }

  #counts(): FleetCounts {
    const sum = (key: "statements" | "errors" | "milliseconds") =>
      this.#connection.counts[key] + this.#bulk.counts[key];
    return {
      ...this.#leases.counts,
      slots: this.#slots.size,
      statements: sum("statements"),
      errors: sum("errors"),
      milliseconds: sum("milliseconds"),
    };
  }

  #demandFollower(): Follower {
    if (this.#follower === null) throw new Error("the fleet is not followed yet");
    return this.#follower;
  }
}
