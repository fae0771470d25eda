/** What the sessions of one set of policies share: their keys, made once, and sums that wait to be handed on. */
import type { Direction } from "#core/meter.ts";
import type { Policy } from "#core/policy.ts";
import { Slot, TokenBucket } from "#lib/token-bucket.ts";
import { isZero, storeCounters, zero, type Counters, type StoredCounters } from "./counters.ts";
import type { PolicyState } from "./policy-state.ts";
import { keysOf, type Reports } from "./reports.ts";

type Buckets = Readonly<Record<Direction, TokenBucket | null>>;

/** A policy at work: its buckets are shared by all its sessions, and new with every book. */
export class ActivePolicy {
  readonly policy: Policy;
  readonly state: PolicyState;
  readonly normal: Buckets;
  readonly overage: Buckets;

  constructor(policy: Policy, state: PolicyState, nowMs: number) {
    this.policy = policy;
    this.state = state;
    this.normal = bucketsOf(policy.bitsPerSecond, nowMs);
    this.overage = bucketsOf(policy.quota?.overage ?? { upload: 0, download: 0 }, nowMs);
  }
}

function bucketsOf({ upload, download }: Readonly<Record<Direction, number>>, nowMs: number): Buckets {
  return {
    upload: upload > 0 ? new TokenBucket(upload, nowMs) : null,
    download: download > 0 ? new TokenBucket(download, nowMs) : null,
  };
}

export class PolicySet {
  readonly forces: readonly ActivePolicy[];
  /** Those with a quota: the only ones that are looked at with every piece. */
  readonly quotas: readonly PolicyState[];
  readonly reportKeys: readonly string[];
  /** Sessions that use it. */
  users = 0;
  /** Its book is no longer in force: late corrections are handed on at once. */
  retired = false;
  readonly pending: Counters = zero();
  readonly #reports: Reports;

  constructor(forces: readonly ActivePolicy[], reports: Reports) {
    this.forces = forces;
    this.quotas = forces.map(({ state }) => state).filter(({ limits }) => limits !== null);
    this.reportKeys = keysOf(forces.map(({ policy }) => policy));
    this.#reports = reports;
  }

  /** A session's own places at the buckets of one direction. */
  slots(direction: Direction): readonly Slot[] {
    return this.forces.flatMap(({ normal, overage, state }) => {
      const slots: Slot[] = [];
      if (normal[direction] !== null) slots.push(new Slot(normal[direction], null));
      if (overage[direction] !== null) slots.push(new Slot(overage[direction], state));
      return slots;
    });
  }

  /** A cap was reached: each report of this session shows it. */
  exceeded(state: PolicyState): void {
    state.counters.exceeded++;
    this.pending.exceeded++;
  }

  /** The sums, which are the caller's alone from then on; null: there are none. */
  take(): StoredCounters | null {
    if (isZero(this.pending)) return null;
    const taken = storeCounters(this.pending);
    this.#clear();
    return taken;
  }

  /** Hands the sums on to policies and reports; `hour` is the one they were made in. */
  settle(hour: number, nowSeconds: number): void {
    const { pending } = this;
    if (isZero(pending)) return;
    for (const { state } of this.forces) {
      state.counters.upload += pending.upload;
      state.counters.download += pending.download;
      state.lastUpdated = nowSeconds;
      state.touch();
    }
    this.#reports.record(this.reportKeys, hour, pending, nowSeconds);
    this.#clear();
  }

  #clear(): void {
    const { pending } = this;
    pending.upload = pending.download = pending.connections = pending.exceeded = 0;
  }
}
