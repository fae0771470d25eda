/** Leases of this node: attached to the counters of users with a quota, renewed before they run out, brought back when idle. */
import { DatabaseError } from "pg";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { UserQuota } from "#core/users.ts";
import type { UserCounter } from "#users/counters.ts";
import { isSameQuota } from "#users/limits.ts";
import type { UserRegistry } from "#users/user-registry.ts";
import { reasonOf } from "./errors.ts";
import type { FleetConnection } from "./fleet-connection.ts";
import type { NodeIdentity } from "./identity.ts";
import { ASK_ONLY, Lease, type LeaseEnv } from "./lease.ts";

export interface LeasesEnv extends Omit<LeaseEnv, "onLow"> {
  readonly identity: NodeIdentity;
  readonly registry: UserRegistry;
  readonly connection: FleetConnection;
  readonly log: Log;
  readonly nowMs: () => number;
  /** The database takes, and adds to its totals, what is counted by the time of the call. Rejects as the connection does. */
  readonly settle: () => Promise<void>;
}

/** Asked for with one statement: its users are locked as long as it runs. */
const MOST_ASKED = 500;
const TICK_MS = 1_000;
/** Between two requests that low leases cause. */
const LEAST_PAUSE_MS = 20;

export class Leases {
  readonly #env: LeasesEnv;
  readonly #leases = new Map<string, Lease>();
  /** Of users without that quota now: what they hold goes back. */
  readonly #orphans = new Set<Lease>();
  #isAsking = false;
  #isSettled = false;
  #isAttaching = false;
  /** Said already. */
  #fault = "";
  #timer: NodeJS.Timeout | null = null;
  readonly #ticks: NodeJS.Timeout;

  constructor(env: LeasesEnv) {
    this.#env = env;
    this.#ticks = setInterval(() => void this.#tick(), TICK_MS).unref();
    env.registry.counters.onUnshared = () => this.#attachNext();
  }

  /** Once the change is made: until the next tick a user could move the whole quota by the account of this node alone. */
  #attachNext(): void {
    if (this.#isAttaching) return;
    this.#isAttaching = true;
    queueMicrotask(() => {
      this.#isAttaching = false;
      this.attach();
    });
  }

  /** Users with a quota get a lease, others lose theirs. After every change of users, and now and then. */
  attach(): void {
    const { registry } = this.#env;
    const present = new Set<string>();
    for (const counter of registry.counters.limited) {
      const { quota = null } = counter.allowance?.limits ?? {};
      const user = registry.books.get(counter.listener)?.users.get(counter.id);
      if (quota === null || user === undefined) continue;
      present.add(counter.id);
      const known = this.#leases.get(counter.id);
      const isSame = known?.generation === user.trafficGeneration && isSameQuota(known.quota, quota);
      const lease = isSame ? known : this.#made(counter, user.trafficGeneration, quota);
      this.#leases.set(counter.id, lease);
      counter.share = lease;
    }
    for (const [id, lease] of this.#leases) {
      if (present.has(id)) continue;
      this.#leases.delete(id);
      if (lease.lentBytes > 0) this.#orphans.add(lease);
    }
  }

  /** What is lent to this node now. */
  get counts(): { readonly leases: number; readonly lentBytes: number } {
    const lent = [...this.#leases.values(), ...this.#orphans].filter(({ lentBytes }) => lentBytes > 0);
    return { leases: lent.length, lentBytes: lent.reduce((sum, { lentBytes }) => sum + lentBytes, 0) };
  }

  /** Everything goes back, at the end. Rejects as the connection does. */
  async bringBack(): Promise<void> {
    this[Symbol.dispose]();
    const lent = [...this.#leases.values(), ...this.#orphans].filter(({ lentBytes }) => lentBytes > 0);
    for (let at = 0; at < lent.length; at += MOST_ASKED)
      await this.#ask(lent.slice(at, at + MOST_ASKED).map((lease) => ({ lease, wanted: 0 })));
  }

  /** Asks for no more. */
  [Symbol.dispose](): void {
    clearInterval(this.#ticks);
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #made(counter: UserCounter, generation: number, quota: UserQuota): Lease {
    const { monotonicMs, nowMs, isUp, onPartition } = this.#env;
    const { uploadBytes = 0, downloadBytes = 0 } = counter.allowance?.used(counter, nowMs()) ?? {};
    const known = {
      usedBytes: uploadBytes + downloadBytes,
      lentBytes: this.#leases.get(counter.id)?.lentBytes ?? 0,
    };
    const onLow = (): void => this.#soon();
    return new Lease({ id: counter.id, generation, quota }, known, { monotonicMs, isUp, onPartition, onLow });
  }

  #soon(): void {
    if (this.#timer !== null || !this.#env.isUp()) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      void this.#tick();
    }, LEAST_PAUSE_MS).unref();
  }

  async #tick(): Promise<void> {
    this.attach();
    if (this.#isAsking || !this.#env.isUp()) return;
    this.#isAsking = true;
    try {
      await this.#renew();
      this.#fault = "";
    } catch (error) {
      // Away: what is lent may be spent, and what comes then is the operator's choice. The next tick asks again.
      const text = `fleet: no leases: ${error instanceof DatabaseError ? messageOf(error) : reasonOf(error)}`;
      if (error instanceof DatabaseError && text !== this.#fault) this.#env.log.error(text);
      else this.#env.log.debug(() => text);
      this.#fault = text;
    } finally {
      this.#isAsking = false;
    }
  }

  async #renew(): Promise<void> {
    const { identity, connection, settle } = this.#env;
    if (!this.#isSettled) {
      await settle();
      await connection.query("SELECT weir.settle($1, $2)", [identity.nodeId, identity.instance]);
      this.#isSettled = true;
    }
    const due: Asked[] = [...this.#orphans].map((lease) => ({ lease, wanted: 0 }));
    const dry: Asked[] = [];
    for (const lease of this.#leases.values()) {
      const wanted = lease.wanted();
      if (wanted !== null) (wanted === ASK_ONLY ? dry : due).push({ lease, wanted });
    }
    const asked = [...due, ...dry].slice(0, MOST_ASKED); // who can go on comes first
    if (asked.length > 0) await this.#ask(asked);
  }

  async #ask(asked: readonly Asked[]): Promise<void> {
    const { identity, connection, settle } = this.#env;
    for (const { lease } of asked) lease.cut();
    try {
      await settle();
      const rows = await connection.query<GrantRow>("SELECT * FROM weir.take_leases($1, $2, $3, $4, $5)", [
        identity.nodeId,
        identity.instance,
        asked.map(({ lease }) => lease.userId),
        asked.map(({ lease }) => lease.generation),
        asked.map(({ wanted }) => wanted),
      ]);
      const byUser = new Map(rows.map((row) => [row.user_id, row]));
      for (const { lease, wanted } of asked) this.#take(lease, wanted, byUser.get(lease.userId));
    } finally {
      for (const { lease } of asked) lease.isAsked = false;
    }
  }

  #take(lease: Lease, wanted: number, row: GrantRow | undefined): void {
    this.#orphans.delete(lease);
    if (row === undefined || row.granted === null) return lease.lose();
    lease.take(wanted, {
      grantedBytes: Number(row.granted),
      uploadBytes: Number(row.upload),
      downloadBytes: Number(row.download),
      resetsAtMs: row.ends?.getTime() ?? null,
    });
  }
}

interface Asked {
  readonly lease: Lease;
  readonly wanted: number;
}

interface GrantRow {
  readonly user_id: string;
  readonly granted: string | null;
  readonly upload: string;
  readonly download: string;
  readonly ends: Date | null;
}
