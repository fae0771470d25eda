/** What one worker has decided by itself, as the main thread finds it in their memory; worker/decided-slots.ts is the other side. */
import type { MessagePort } from "node:worker_threads";
import type { LocalEnd, WorkerConnection } from "#core/accepted.ts";
import { ADDRESS_ORIGINS } from "#core/dial-plan.ts";
import type { Endpoint } from "#core/session.ts";
import type { DecidedConnection, DecisionVersion, FoundDial } from "#dataplane/decision-source.ts";
import { describe } from "#net/listen/accept.ts";
import { float64At, int32At, itemAt } from "#lib/at.ts";
import type { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import type { DecisionRow } from "#dataplane/workers/shared/decision-memory.ts";
import { listenerOf } from "#dataplane/workers/shared/slot-tag.ts";
import {
  CONNECTED,
  DIALLING,
  JOINED,
  NOT_DECIDED,
  REQUEST_TYPES,
  type DecisionData,
} from "#dataplane/workers/shared/decision-data.ts";
import { FIRST_ACCEPTED_SLOT, type RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import { Sockaddrs } from "#dataplane/workers/shared/sockaddrs.ts";
import type { CommandObserver } from "./commands.ts";
import type { DecidableListener } from "./decidable-listener.ts";
import type { WorkerTaskOwner } from "./task-owner.ts";

/** A version on its way to workers. */
export interface PublishedVersion {
  readonly data: DecisionData;
  /** Null: workers decide nothing by it. */
  readonly by: DecisionVersion | null;
  /** By number; null: nothing is decided of it. */
  readonly listeners: readonly (DecidableListener | null)[];
  /** Workers that have it, and the one that publishes it. At none it is disposed of. */
  holders: number;
}

export function dropVersion(version: PublishedVersion): void {
  version.holders--;
  if (version.holders === 0) version.by?.[Symbol.dispose]();
}

/** Both ends, for a connection object of the main thread. */
export interface DecidedEnds {
  readonly source: Endpoint;
  readonly local: Endpoint;
}

/** A connection that the main thread has joined, as its flow and its handle know it. */
export type JoinedClient = WorkerConnection & WorkerTaskOwner;

/** What the worker's handle does for its rows. */
export interface RowsEnv {
  readonly table: RelayMemory;
  readonly accepts: AcceptMemory;
  readonly port: MessagePort;
  /** Tells the worker to take the version from its port. */
  readonly command: (observer: CommandObserver) => void;
  /** Takes all events of the worker up to now, and calls `settle`. */
  readonly takeEvents: () => void;
}

export class DecidedRows {
  readonly #env: RowsEnv;
  readonly #sockaddrs = new Sockaddrs();
  readonly #versions = new Map<number, PublishedVersion>();
  /** Of what the worker is told to take; null: nothing is under way. */
  #underWay: number | null = null;
  #next: PublishedVersion | null = null;
  /** What the worker has of rules, or is getting. */
  #rules: DecisionData["rules"] = null;
  /** Connections by versions before this one have all been reported, once the events up to now are taken; 0: there is none. */
  #oldest = 0;

  constructor(env: RowsEnv) {
    this.#env = env;
  }

  /** One version is under way at most, however often they change. */
  send(version: PublishedVersion): void {
    if (this.#underWay === null) return this.#post(version);
    if (this.#next !== null) dropVersion(this.#next);
    this.#next = version;
    version.holders++;
  }

  #post(version: PublishedVersion): void {
    const { data } = version;
    this.#versions.set(data.version, version);
    version.holders++;
    this.#underWay = data.version;
    const { rules } = data;
    this.#env.port.postMessage(rules === this.#rules ? { ...data, rules: null } : data);
    this.#rules = rules;
    this.#env.command({ onExecuted: () => this.#onTaken(data.version) });
  }

  #onTaken(version: number): void {
    this.#underWay = null;
    this.#oldest = version;
    setImmediate(this.#env.takeEvents);
    const next = this.#next;
    if (next === null) return;
    this.#next = null;
    this.#post(next);
    dropVersion(next);
  }

  /** To be called when all events of the worker up to now have been taken. */
  settle(): void {
    if (this.#oldest === 0) return;
    for (const [number, version] of this.#versions) {
      if (number === this.#oldest) return;
      this.#versions.delete(number);
      dropVersion(version);
    }
  }

  /** On the worker's event: the slot is about to be the worker's again. */
  onServed(slot: number): void {
    const { accepts, table } = this.#env;
    const version = this.#versionOf(slot);
    const connection = version === null ? null : this.#connectionAt(slot, version);
    accepts.decisions.decided[slot] = NOT_DECIDED;
    const { counts } = table;
    if (connection !== null)
      version?.by?.served(connection, float64At(counts, slot * 2), float64At(counts, slot * 2 + 1));
  }

  /** Makes all connections that the worker has decided known to the main thread; `hold` registers each in its slot. */
  join(hold: (slot: number, ends: DecidedEnds) => JoinedClient): void {
    const { table } = this.#env;
    const { decisions } = this.#env.accepts;
    if (this.#versions.size === 0) return;
    for (let slot = FIRST_ACCEPTED_SLOT; slot < FIRST_ACCEPTED_SLOT + table.acceptedSlots; slot++) {
      // Atomic, so that it comes behind the store by which the version went: see `commit` of worker/decided-slots.ts.
      if (Atomics.load(decisions.decided, slot) !== CONNECTED) continue;
      // It may have just ended.
      if (Atomics.compareExchange(decisions.decided, slot, CONNECTED, JOINED) !== CONNECTED) continue;
      const version = this.#versionOf(slot);
      if (version === null) continue;
      const connection = this.#connectionAt(slot, version);
      const { source, inbound } = connection.metadata;
      const client = hold(slot, { source, local: inbound.local });
      const held = this.#holdUser(slot, version, inbound.user, client);
      version.by?.joined(connection, client, () => held?.[Symbol.dispose]());
    }
  }

  /** It ends with its user. Null: it is none's. */
  #holdUser(
    slot: number,
    version: PublishedVersion,
    user: string | null,
    client: JoinedClient,
  ): Disposable | null {
    const { users } = this.#listenerOf(slot, version);
    return user === null ? null : (users?.letIn.hold(user, () => client.reset()) ?? null);
  }

  #listenerOf(slot: number, { listeners }: PublishedVersion): DecidableListener {
    const listener = itemAt(listeners, listenerOf(int32At(this.#env.accepts.tags, slot)));
    if (listener === null) throw new Error("a worker has decided for a listener that is not for workers");
    return listener;
  }

  /**
   * One that the worker has decided, and dials or has dialled between these two. `nearOf` says which end it has here, as the
   * kernel knows it now. None is missed: the worker says where it dials, and which socket is for that, before it connects.
   */
  find(near: Endpoint, to: Endpoint, nearOf: (slot: number) => LocalEnd | null): FoundDial | null {
    const { table } = this.#env;
    const { decisions } = this.#env.accepts;
    for (let slot = FIRST_ACCEPTED_SLOT; slot < FIRST_ACCEPTED_SLOT + table.acceptedSlots; slot++) {
      const state = Atomics.load(decisions.decided, slot);
      if (state !== DIALLING && state !== CONNECTED) continue;
      const { ip, port } = this.#sockaddrs.original(decisions.destination(slot));
      const own = port === to.port && ip === to.ip ? nearOf(slot) : null;
      if (own?.port === near.port && own.ip === near.ip) return this.#foundAt(slot, own.descriptor);
    }
    return null;
  }

  #foundAt(slot: number, descriptor: number): FoundDial {
    const version = this.#versionOf(slot);
    if (version === null || version.by === null) return { descriptor, isDirect: true, metadata: null };
    const { found, metadata } = this.#connectionAt(slot, version);
    return { descriptor, isDirect: version.by.isDirect(found), metadata };
  }

  /** Null: at the end of the program, when versions do not wait for workers. */
  #versionOf(slot: number): PublishedVersion | null {
    return this.#versions.get(this.#env.accepts.decisions.versionOf(slot)) ?? null;
  }

  #connectionAt(slot: number, version: PublishedVersion): DecidedConnection {
    const { accepts } = this.#env;
    const { decisions } = accepts;
    const row = decisions.row(slot) as unknown as DecisionRow;
    const [, type, target, list, position, end, origin, isFaked, user] = row;
    const { context, users } = this.#listenerOf(slot, version);
    const ends = {
      source: this.#sockaddrs.source(accepts.source(slot)),
      local: this.#sockaddrs.local(decisions.local(slot)),
    };
    const { ip, port } = this.#sockaddrs.original(decisions.wanted(slot));
    const dialled = this.#sockaddrs.original(decisions.destination(slot));
    const ipFrom = itemAt(ADDRESS_ORIGINS, origin);
    const faked = isFaked === 0 ? null : decisions.nameOf(slot);
    const askedFor = faked === null ? { ip, port } : this.#sockaddrs.original(decisions.faked(slot));
    const asked = {
      network: "tcp",
      type: users?.written.type ?? itemAt(REQUEST_TYPES, type),
      user: users?.written.names[user] ?? null,
      destination:
        ipFrom === "client" || faked !== null
          ? { host: null, ip: askedFor.ip, port: askedFor.port }
          : { host: decisions.nameOf(slot), ip: null, port },
    } as const;
    const acceptedAtMs = float64At(decisions.startedAtMs, slot);
    const isRemote = users === null ? undefined : true;
    const metadata = { ...describe(context, ends, asked, isRemote), acceptedAtMs };
    return { found: { target, list, position, end }, metadata, ip, ipFrom, faked, dialled };
  }

  /** The worker has died, or will decide no more, and all that it had decided is known. */
  dropAll(): void {
    for (const version of this.#versions.values()) dropVersion(version);
    this.#versions.clear();
    if (this.#next !== null) dropVersion(this.#next);
    this.#next = null;
  }

  close(): void {
    this.dropAll();
    this.#env.port.close();
  }
}
