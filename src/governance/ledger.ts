/** The ledger of a core with traffic control: every session has a meter, whether a policy applies today or not. */
import type { Direction, Ledger, Meter } from "#core/meter.ts";
import { PassingMap } from "#lib/passing-map.ts";
import type { PolicyBook } from "#core/policy.ts";
import type { Decision } from "#core/router.ts";
import type { Ip, Metadata } from "#core/session.ts";
import { PolicySet, ActivePolicy } from "./account.ts";
import { HOUR_SECONDS, hourStart } from "./calendar.ts";
import type { GovernanceClock } from "./clock.ts";
import { GovernedMeter, type MeterOwner } from "./governed-meter.ts";
import { addTo, loadCounters, type StoredCounters } from "./counters.ts";
import type { Reports } from "./reports.ts";
import type { StateBook } from "./state-book.ts";
import { itemAt, valueAt } from "#lib/at.ts";

/** What the ledger works by. */
export interface Rules {
  readonly book: PolicyBook;
  readonly states: StateBook;
  readonly reports: Reports;
  /** A quota was reached: commit soon. Never throws. */
  readonly onExceeded: () => void;
}

/** What the ledger calls. None of it throws. */
export interface LedgerEnv {
  /**
   * Before sums are handed on: workers charge the meters with what has moved. Where they did so within `maxAgeMs` (their
   * own measure if it is not given), that may be enough.
   */
  look(maxAgeMs?: number): void;
  /** Before other rules come into force. */
  onInstall(): void;
  /** A link to the portal that names these policies; null: there is no portal. */
  portalLink(ids: readonly string[]): string | null;
}

/** What the sessions of one set of policies have moved within one hour, for another process to count. */
export interface ForwardedSums {
  readonly policies: readonly string[];
  /** Unix seconds of its start. */
  readonly hour: number;
  readonly counted: StoredCounters;
}

/** No other thread charges its meters, and there is no portal. */
const ALONE: LedgerEnv = { look() {}, onInstall() {}, portalLink: () => null };

export class GovernedLedger implements Ledger, MeterOwner {
  readonly clock: GovernanceClock;
  readonly #meters = new PassingMap<GovernedMeter, null>();
  #rules: Rules | null = null;
  #forces = new Map<string, ActivePolicy>();
  /** By the ids of its policies. */
  #accounts = new Map<string, PolicySet>();
  /** The hour that pending sums belong to. */
  #hour = 0;
  readonly #env: LedgerEnv;
  /** Another process keeps the books. */
  #forward: ((sums: ForwardedSums) => void) | null = null;

  constructor(clock: GovernanceClock, env: LedgerEnv = ALONE) {
    this.clock = clock;
    this.#env = env;
  }

  portalLink(ids: readonly string[]): string | null {
    return this.#env.portalLink(ids);
  }

  get free(): boolean {
    return this.#rules === null;
  }

  open(metadata: Metadata, decision: Decision): Meter {
    const meter = new GovernedMeter(this, metadata, decision);
    this.#meters.set(meter, null);
    const account = this.#bind(meter);
    if (account !== null) this.#countConnection(account, account.forces);
    return meter;
  }

  close(meter: GovernedMeter): void {
    this.#meters.delete(meter);
    this.#unbind(meter);
  }

  /**
   * Puts other rules in force (null: none). What the old ones counted is handed on first; then every live session is
   * bound anew, so no byte is counted twice or lost. Buckets are new and full.
   */
  install(rules: Rules | null): void {
    this.#env.onInstall();
    this.settle(0); // to the byte: what moved before the change is never charged to the policies after it
    const before = new Map([...this.#meters.keys()].map((meter) => [meter, meter.account] as const));
    for (const meter of this.#meters.keys()) this.#unbind(meter);
    for (const account of this.#accounts.values()) account.retired = true;
    this.#accounts = new Map();
    this.#rules = rules;
    const nowMs = this.clock.monotonicMs();
    this.#forces = new Map(
      rules?.book.policies.map((policy) => [
        policy.id,
        new ActivePolicy(policy, rules.states.of(policy), nowMs),
      ]),
    );
    for (const [meter, old] of before) this.#bindAfter(meter, old);
  }

  /** Live sessions from these addresses belong to what the book says now: it is another device that has them. */
  bindAnew(sources: ReadonlySet<Ip>): void {
    const meters = [...this.#meters.keys()].filter(({ metadata }) => sources.has(metadata.source.ip));
    if (this.#rules === null || meters.length === 0) return;
    this.settle(0);
    for (const meter of meters) {
      const { account } = meter;
      this.#unbind(meter);
      this.#bindAfter(meter, account);
    }
  }

  /** A policy that a session was not under before counts it as a connection. */
  #bindAfter(meter: GovernedMeter, old: PolicySet | null): void {
    const account = this.#bind(meter);
    if (account === null) return;
    const known = new Set(old?.forces.map(({ state }) => state));
    const added = account.forces.filter(({ state }) => !known.has(state));
    if (added.length > 0 && (old === null || added.length === account.forces.length))
      this.#countConnection(account, added);
    else for (const { state } of added) state.counters.connections++;
  }

  /** Hands all sums on to policies and reports, and forgets accounts without sessions; `maxAgeMs` as `look` takes it. */
  settle(maxAgeMs?: number): void {
    this.#env.look(maxAgeMs);
    const nowSeconds = this.#nowSeconds();
    for (const [key, account] of this.#accounts) {
      this.#settle(account, nowSeconds);
      if (account.users === 0) this.#accounts.delete(key);
    }
    this.#hour = hourStart(nowSeconds);
    this.#rules?.states.time.look();
    for (const { state } of this.#forces.values()) state.refresh();
  }

  #settle(account: PolicySet, nowSeconds: number): void {
    if (this.#forward === null) return account.settle(this.#hour, nowSeconds);
    const counted = account.take();
    if (counted !== null)
      this.#forward({ policies: account.forces.map(({ policy }) => policy.id), hour: this.#hour, counted });
  }

  /**
   * From now on sums go to `forward` in place of the books; what was counted before is in these. Quotas go on to be
   * applied here, by what is known here. Null: to the books again.
   */
  forward(forward: ((sums: ForwardedSums) => void) | null): void {
    this.settle(0);
    this.#forward = forward;
  }

  /** Sums of another process. Policies that are no more are passed over. */
  take(sums: ForwardedSums): void {
    const [upload, download, connections] = sums.counted;
    for (const { state } of this.#forcesOf(sums)) {
      state.counters.connections += connections;
      if (!state.use(upload, download)) continue;
      state.counters.exceeded++;
      this.#rules?.onExceeded();
    }
    if (this.#forward === null) this.takeBack(sums);
    else this.#forward(sums);
  }

  /** Sums that were forwarded and are to be in the books here after all: the quotas have them. */
  takeBack(sums: ForwardedSums): void {
    const forces = this.#forcesOf(sums);
    if (this.#rules === null || forces.length === 0) return;
    const set = new PolicySet(forces, this.#rules.reports);
    addTo(set.pending, loadCounters(sums.counted));
    set.settle(sums.hour, this.#nowSeconds());
  }

  #forcesOf({ policies }: ForwardedSums): readonly ActivePolicy[] {
    return policies.flatMap((id) => this.#forces.get(id) ?? []);
  }

  /** Before a transfer: has time freed the quota of a policy that was over? */
  refresh({ quotas }: PolicySet): void {
    for (let at = 0; at < quotas.length; at++) {
      const state = itemAt(quotas, at);
      if (state.overQuota) state.refresh();
    }
  }

  /** Counts; `bytes` is negative for a piece that never went out. */
  record(account: PolicySet, direction: Direction, bytes: number): void {
    const nowSeconds = this.#nowSeconds();
    if (nowSeconds >= this.#hour + HOUR_SECONDS || nowSeconds < this.#hour) this.settle();
    const { pending, quotas } = account;
    pending[direction] += bytes;
    if (account.retired) this.#settle(account, nowSeconds);
    for (let at = 0; at < quotas.length; at++) {
      const state = itemAt(quotas, at);
      const isUpload = direction === "upload";
      if (!state.use(isUpload ? bytes : 0, isUpload ? 0 : bytes)) continue;
      account.exceeded(state);
      this.#rules?.onExceeded();
    }
  }

  #nowSeconds(): number {
    return Math.floor(this.clock.wallMs() / 1000);
  }

  #bind(meter: GovernedMeter): PolicySet | null {
    const account = this.#accountFor(meter);
    meter.bind(account);
    if (account === null) return null;
    account.users++;
    for (const { state } of account.forces) {
      state.active++;
      state.refresh();
    }
    return account;
  }

  #unbind(meter: GovernedMeter): void {
    const { account } = meter;
    if (account === null) return;
    account.users--;
    for (const { state } of account.forces) state.active--;
    meter.bind(null);
  }

  #accountFor({ metadata, decision }: GovernedMeter): PolicySet | null {
    if (this.#rules === null) return null;
    const policies = this.#rules.book.select(metadata, decision);
    if (policies.length === 0) return null;
    const key = policies.map(({ id }) => id).join("|");
    let account = this.#accounts.get(key);
    if (account === undefined) {
      const forces = policies.map(({ id }) => valueAt(this.#forces, id));
      account = new PolicySet(forces, this.#rules.reports);
      this.#accounts.set(key, account);
    }
    return account;
  }

  #countConnection(account: PolicySet, forces: readonly ActivePolicy[]): void {
    account.pending.connections++;
    for (const { state } of forces) state.counters.connections++;
  }
}
