/** The part of one user's quota that this node may spend, and what is known of the quota. */
import type { Direction } from "#core/meter.ts";
import type { QuotaView, UserQuota } from "#core/users.ts";
import type { QuotaShare } from "#users/quota-share.ts";

export interface LeaseEnv {
  readonly monotonicMs: () => number;
  /** Can more be asked for? */
  readonly isUp: () => boolean;
  readonly onPartition: "allow" | "overage" | "stop";
  /** A lease runs out: more is to be asked for at once. */
  readonly onLow: () => void;
}

/** What the database answers. */
export interface Grant {
  readonly grantedBytes: number;
  /** Over all nodes, in the present period. */
  readonly uploadBytes: number;
  readonly downloadBytes: number;
  readonly resetsAtMs: number | null;
}

/** Asks whether there is anything to be had, and for none of it. */
export const ASK_ONLY = -1;

/** Without renewal it may no longer be spent. */
const LIFE_MS = 600_000;
const IDLE_MS = 60_000;
/** After which a user without anything left is asked for again. */
const RETRY_MS = 10_000;
/** What may be spent without a lease, where twenty times as much is left. */
const FIRST_BYTES = 1_048_576;
/** The rate is measured over so long, at least and at most. */
const LEAST_RATE_MS = 1_000;
const MOST_RATE_MS = 60_000;

export class Lease implements QuotaShare {
  readonly userId: string;
  readonly generation: number;
  readonly quota: UserQuota;
  readonly #env: LeaseEnv;
  /** What the database counts as spent by this node. */
  lentBytes: number;
  /** Answered last; null: never. */
  #known: Grant | null = null;
  /** Of the whole quota, at the last answer, or by what this node knew before. */
  #quotaLeftBytes: number;
  /** The database has nothing for this node. */
  #isDry: boolean;
  /** What may be spent further; below 0: what was spent beyond. */
  #leftBytes: number;
  /** Since the ledger was cut for the request under way, and since the cut for the last answer. */
  #sinceCut = { upload: 0, download: 0 };
  #spent = { upload: 0, download: 0 };
  #answeredAtMs: number;
  #spentAtMs = -Infinity;
  #rateFromMs: number;
  #rateBytes = 0;
  /** A request is under way. */
  isAsked = false;

  /** `usedBytes`: what is known of the use so far. `lentBytes`: of a lease in whose place this one comes. */
  constructor(
    user: { readonly id: string; readonly generation: number; readonly quota: UserQuota },
    { usedBytes, lentBytes }: { readonly usedBytes: number; readonly lentBytes: number },
    env: LeaseEnv,
  ) {
    this.userId = user.id;
    this.generation = user.generation;
    this.quota = user.quota;
    this.#env = env;
    this.lentBytes = lentBytes;
    this.#quotaLeftBytes = Math.max(0, user.quota.totalBytes - usedBytes);
    this.#isDry = this.#quotaLeftBytes === 0;
    this.#leftBytes = firstOf(this.#quotaLeftBytes);
    this.#answeredAtMs = this.#rateFromMs = env.monotonicMs();
  }

  get isOver(): boolean {
    if (this.#isDry) return true;
    if (this.#mayBeSpent() || this.#env.isUp()) return false;
    const { onPartition } = this.#env;
    if (onPartition === "allow") return false;
    return onPartition === "stop" || this.#spent.upload + this.#spent.download >= this.#quotaLeftBytes;
  }

  get leftBytes(): number {
    return this.#leftBytes;
  }

  get isWaiting(): boolean {
    return !this.#isDry && !this.#mayBeSpent() && this.#env.isUp();
  }

  spend(direction: Direction, bytes: number): void {
    const nowMs = this.#env.monotonicMs();
    this.#leftBytes -= bytes;
    this.#sinceCut[direction] += bytes;
    this.#spent[direction] += bytes;
    this.#spentAtMs = nowMs;
    if (nowMs - this.#rateFromMs > MOST_RATE_MS) {
      this.#rateFromMs = nowMs;
      this.#rateBytes = 0;
    }
    this.#rateBytes += bytes;
    if (!this.isAsked && !this.#isDry && this.#isLow()) this.#env.onLow();
  }

  learn(movedBytes: number): void {
    if (this.quota.reset === "never" && movedBytes >= this.quota.totalBytes) this.#isDry = true;
  }

  used(): QuotaView | null {
    if (this.#known === null) return null;
    const { uploadBytes, downloadBytes, resetsAtMs } = this.#known;
    const { upload, download } = this.#spent;
    return {
      uploadBytes: Math.max(0, uploadBytes + upload),
      downloadBytes: Math.max(0, downloadBytes + download),
      resetsAtMs,
    };
  }

  /** How much to ask for now; 0: what is left goes back; null: nothing is to be asked. */
  wanted(): number | null {
    const nowMs = this.#env.monotonicMs();
    if (this.isAsked) return null;
    if (this.#isDry) return nowMs - this.#answeredAtMs >= RETRY_MS ? ASK_ONLY : null;
    if (nowMs - this.#spentAtMs >= IDLE_MS) return this.lentBytes > 0 ? 0 : null;
    if (!this.#isLow() && nowMs - this.#answeredAtMs < LIFE_MS / 2) return null;
    const perMs = this.#rateBytes / Math.max(LEAST_RATE_MS, nowMs - this.#rateFromMs);
    return Math.max(1, Math.ceil(perMs * MOST_RATE_MS));
  }

  /** What is spent by now will be in the ledger when the answer comes. In the turn in which the ledger is cut. */
  cut(): void {
    this.isAsked = true;
    this.#sinceCut = { upload: 0, download: 0 };
  }

  take(wanted: number, grant: Grant): void {
    const { uploadBytes, downloadBytes, grantedBytes } = grant;
    const { upload, download } = this.#sinceCut;
    this.#known = grant;
    this.#answeredAtMs = this.#env.monotonicMs();
    this.#spent = { upload, download };
    this.#quotaLeftBytes = Math.max(0, this.quota.totalBytes - uploadBytes - downloadBytes);
    this.lentBytes = wanted > 0 ? grantedBytes : 0;
    this.#isDry = wanted === 0 ? this.#quotaLeftBytes === 0 : grantedBytes <= 0;
    const mayBytes = wanted > 0 ? grantedBytes : firstOf(wanted < 0 ? grantedBytes : this.#quotaLeftBytes);
    this.#leftBytes = mayBytes - upload - download;
  }

  /** The database has no such lease: the user is gone, or the quota. */
  lose(): void {
    this.lentBytes = 0;
  }

  #mayBeSpent(): boolean {
    if (this.#leftBytes <= 0) return false;
    return this.lentBytes === 0 || this.#env.monotonicMs() - this.#answeredAtMs < LIFE_MS;
  }

  #isLow(): boolean {
    const wholeBytes = this.lentBytes > 0 ? this.lentBytes : FIRST_BYTES;
    return this.#leftBytes * 2 <= wholeBytes || !this.#mayBeSpent();
  }
}

function firstOf(leftBytes: number): number {
  return Math.floor(Math.min(FIRST_BYTES, leftBytes / 20));
}
