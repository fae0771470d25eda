/**
 * From the counters of users here to the ledger, from there to the database, and back: what users moved on all nodes is what
 * their counters show.
 */
import type { Client } from "pg";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Change } from "#store/kv.ts";
import type { AsyncStore } from "#store/opened-store.ts";
import type { UserCounter } from "#users/counters.ts";
import type { UserRegistry } from "#users/user-registry.ts";
import { FleetError } from "./errors.ts";
import { type FleetConnection, UnansweredError } from "./fleet-connection.ts";
import type { NodeIdentity } from "./identity.ts";
import type { Ledger, LedgerEntry, Moved } from "./ledger.ts";

export interface TrafficEnv {
  readonly identity: NodeIdentity;
  readonly ledger: Ledger;
  readonly store: AsyncStore;
  readonly registry: UserRegistry;
  /** Its own: an upload holds up no change. */
  readonly connection: FleetConnection;
  readonly log: Log;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
}

/** What a crash may cost; as often it is sent. */
export const CUT_MS = 1_000;
/** Some 100 bytes each. */
const BATCH = 2_000;
/** Entries that one fold takes of each epoch. */
const FOLD_MOST = 100_000;
const MOST_RECENT = 120;
const FOLD_MS = 1_000;
const TIDY_MS = 600_000;

export class Traffic {
  readonly #env: TrafficEnv;
  /** Counters that were written to the state file since the last cut, and may have moved. */
  readonly #moved = new Set<UserCounter>();
  /** By cut, of the last minute. */
  readonly #recent: { readonly atMs: number; readonly upload: number; readonly download: number }[] = [];
  #unwritten: readonly Change[] = [];
  #cutAtMs: number;
  #sending: Promise<boolean> = Promise.resolve(true);
  /** An upload was not answered: the database has it or not, so totals would count it twice or not at all. */
  #isInDoubt: boolean;
  #isClosed = false;
  /** Of the totals that are known here; -1: none are. */
  #folds = -1;
  #foldAtMs = -Infinity;
  #tidyAtMs: number;

  constructor(env: TrafficEnv) {
    this.#env = env;
    this.#cutAtMs = env.monotonicMs();
    this.#tidyAtMs = env.monotonicMs();
    this.#isInDoubt = env.ledger.size > 0; // an earlier process may have sent what it leaves behind
  }

  /** These are written now, so that the registry counts them as unchanged. */
  note(counters: Iterable<UserCounter>): void {
    for (const counter of counters) this.#moved.add(counter);
  }

  /** All totals are to be asked for again: users have come with some of their own. */
  forgetTotals(): void {
    this.#folds = -1;
  }

  /** What users moved here in the last minute. */
  get lastMinute(): { readonly upload: number; readonly download: number } {
    const sinceMs = this.#env.monotonicMs() - 60_000;
    while ((this.#recent[0]?.atMs ?? Infinity) < sinceMs) this.#recent.shift();
    const sum = (key: "upload" | "download") => this.#recent.reduce((total, one) => total + one[key], 0);
    return { upload: sum("upload"), download: sum("download") };
  }

  /** Appends what has moved by now to the ledger, and writes it. Never rejects; false: the file did not take it. */
  async cut(): Promise<boolean> {
    if (this.#isClosed) return true;
    const changes = [...this.#unwritten, ...this.#env.ledger.append(this.#takeMoved())];
    this.#unwritten = [];
    try {
      if (changes.length > 0) await this.#env.store.commit(changes, { backup: false });
      return true;
    } catch (error) {
      this.#unwritten = [...this.#unwritten, ...this.#env.ledger.unwritten(changes)];
      this.#env.log.warning(`fleet: the ledger is not written, it is tried again: ${messageOf(error)}`);
      return false;
    }
  }

  /** The last cut: what is counted later is in no ledger. Never rejects. */
  async close(): Promise<void> {
    const written = this.cut();
    this.#isClosed = true;
    await written;
  }

  /**
   * Sends what the database has not acknowledged, and folds. False: the node is not enrolled now. Rejects as the connection
   * does.
   */
  send(): Promise<boolean> {
    const sent = this.#sending.then(() => this.#send());
    this.#sending = sent.catch(() => false); // the caller has it
    return sent;
  }

  async #send(): Promise<boolean> {
    try {
      for (let batch = this.#env.ledger.batch(BATCH); batch !== null; batch = this.#env.ledger.batch(BATCH))
        if (!(await this.#upload(batch.epoch, batch.after, batch.entries))) return false;
      this.#isInDoubt = false; // all that was ever sent is acknowledged
    } catch (error) {
      if (error instanceof UnansweredError) this.#isInDoubt = true;
      throw error;
    }
    await this.#keepUp();
    return true;
  }

  /** The database takes, and adds to its totals, what is counted by now. Rejects as the connection does. */
  async settle(): Promise<void> {
    await this.cut();
    if (!(await this.send())) throw new FleetError("this node is not enrolled now");
    await this.#env.connection.query("SELECT weir.fold($1)", [FOLD_MOST]);
  }

  /** Counters here get what all nodes have counted. Rejects as the connection does. */
  async refresh(): Promise<void> {
    if (this.#isInDoubt) await this.send();
    if (this.#isInDoubt) return;
    await this.#env.connection.run(async (client) => this.#take(await fetchTotals(client, this.#folds)));
  }

  #takeMoved(): readonly Moved[] {
    const { registry, nowMs, monotonicMs } = this.#env;
    const seconds = Math.ceil((monotonicMs() - this.#cutAtMs) / 1000);
    this.#cutAtMs = monotonicMs();
    const [atMs, steadyMs] = [Math.trunc(nowMs()), registry.time.nowMs()];
    const moved: Moved[] = [];
    for (const counter of new Set([...this.#moved, ...registry.counters.changed])) {
      // Less than before: what was counted and never went out. It is settled with what comes next.
      const upload = Math.max(0, counter.uploadBytes - counter.accountedUpload);
      const download = Math.max(0, counter.downloadBytes - counter.accountedDownload);
      const generation = registry.books.get(counter.listener)?.users.get(counter.id)?.trafficGeneration;
      if (upload + download === 0 || generation === undefined) continue;
      if (registry.counters.get(counter.listener, counter.id) !== counter) continue; // reset, or gone
      counter.accountedUpload += upload;
      counter.accountedDownload += download;
      moved.push({ user: counter.id, generation, atMs, steadyMs, seconds, upload, download });
    }
    this.#moved.clear();
    const sum = (key: "upload" | "download") => moved.reduce((total, one) => total + one[key], 0);
    if (moved.length > 0)
      this.#recent.push({ atMs: this.#cutAtMs, upload: sum("upload"), download: sum("download") });
    if (this.#recent.length > MOST_RECENT) this.#recent.shift();
    return moved;
  }

  /** False: there is no more to send now. */
  async #upload(epoch: number, after: number, entries: readonly LedgerEntry[]): Promise<boolean> {
    const { identity, ledger, connection, log } = this.#env;
    const column = <T>(of: (entry: LedgerEntry) => T): readonly T[] => entries.map(of);
    const rows = await connection.query<{ received: string | null }>(
      "SELECT weir.upload($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS received",
      [
        identity.nodeId,
        identity.instance,
        epoch,
        after,
        column(({ seq }) => seq),
        column(({ user }) => user),
        column(({ generation }) => generation),
        column((entry) => this.#ageMs(entry)),
        column(({ seconds }) => seconds),
        column(({ upload }) => upload),
        column(({ download }) => download),
      ],
    );
    const received = rows[0]?.received ?? null;
    if (received === null) return false; // not enrolled now
    if (Number(received) < after)
      log.warning(
        `fleet: the database lacks ledger entries that it had acknowledged (was it restored?): epoch ${epoch}, ${received} of ${after}`,
      );
    ledger.acknowledge(epoch, Number(received));
    return true;
  }

  /** A clock that was set since puts nothing into another month. */
  #ageMs({ atMs, steadyMs }: LedgerEntry): number {
    const { nowMs, registry } = this.#env;
    return Math.max(0, Math.trunc(steadyMs === null ? nowMs() - atMs : registry.time.nowMs() - steadyMs));
  }

  async #keepUp(): Promise<void> {
    const { connection, monotonicMs } = this.#env;
    if (monotonicMs() - this.#foldAtMs < FOLD_MS * (0.5 + Math.random())) return;
    this.#foldAtMs = monotonicMs();
    await connection.query("SELECT weir.fold($1)", [FOLD_MOST]);
    if (monotonicMs() - this.#tidyAtMs < TIDY_MS) return;
    this.#tidyAtMs = monotonicMs();
    await connection.query("SELECT weir.tidy()");
  }

  #take(rows: readonly TotalRow[]): void {
    const { registry, ledger, nowMs } = this.#env;
    const listeners = new Map(
      [...registry.listeners.keys()].flatMap((tag) => {
        const book = registry.books.get(tag);
        return book === undefined ? [] : [[tag, book] as const];
      }),
    );
    for (const { user_id: id, generation, upload, download, folds } of rows) {
      this.#folds = Number(folds);
      for (const [tag, book] of listeners) {
        const counter = registry.counters.get(tag, id);
        if (counter === null || book.users.get(id)?.trafficGeneration !== generation) continue;
        const unsent = ledger.sumOf(id, generation);
        counter.correct(Number(upload) + unsent.upload, Number(download) + unsent.download, nowMs());
      }
    }
  }
}

interface TotalRow {
  readonly user_id: string;
  readonly generation: number;
  readonly upload: string;
  readonly download: string;
  readonly folds: string;
}

async function fetchTotals(client: Client, folds: number): Promise<readonly TotalRow[]> {
  const { rows } = await client.query<TotalRow>("SELECT * FROM weir.totals($1)", [folds]);
  return rows;
}
