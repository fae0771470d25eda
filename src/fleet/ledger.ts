/**
 * What users moved on this node, as entries that are appended and never changed: in the state file until the database has
 * acknowledged them. Node, epoch and number name an entry for ever, so it may be sent as often as it takes.
 */
import { StoreError } from "#core/errors.ts";
import type { Change } from "#store/kv.ts";
import { LEDGER } from "#users/records.ts";

export interface LedgerEntry {
  readonly epoch: number;
  /** Grows within an epoch; numbers may be missing. */
  readonly seq: number;
  readonly user: string;
  readonly generation: number;
  /** When the interval ended, by this machine's clock. */
  readonly atMs: number;
  /** The same by a clock that is never set; null: it was another process. */
  readonly steadyMs: number | null;
  readonly seconds: number;
  readonly upload: number;
  readonly download: number;
}

export type Moved = Omit<LedgerEntry, "epoch" | "seq">;

/** Entries in memory and in the file; beyond this those of one user and hour that were never sent become one. */
const MOST_ENTRIES = 20_000;
const HOUR_MS = 3_600_000;

export class Ledger {
  readonly epoch: number;
  readonly #mostEntries: number;
  /** By epoch, the oldest first; in the order of their numbers. */
  readonly #epochs = new Map<number, LedgerEntry[]>();
  /** By epoch: the last number that was sent; no later one has left this machine. */
  readonly #sent = new Map<number, number>();
  /** By epoch: the last number that the database has. */
  readonly #acknowledged = new Map<number, number>();
  readonly #sums = new Map<string, { upload: number; download: number }>();
  #lastSeq = 0;
  #size = 0;
  /** What the file has and is to have no more. */
  #gone: string[] = [];

  /** `stored`: the entries of earlier processes; they may have been sent. Throws `StoreError`. */
  constructor(
    epoch: number,
    stored: Iterable<readonly [key: string, value: Buffer]>,
    mostEntries = MOST_ENTRIES,
  ) {
    this.epoch = epoch;
    this.#mostEntries = mostEntries;
    for (const [key, value] of stored) {
      const entry = decode(key, value);
      this.#put(entry);
      this.#sent.set(entry.epoch, entry.seq);
    }
    for (const entries of this.#epochs.values()) entries.sort((a, b) => a.seq - b.seq);
  }

  /** Not acknowledged. */
  get size(): number {
    return this.#size;
  }

  /** What of a user the database has not acknowledged. */
  sumOf(user: string, generation: number): { readonly upload: number; readonly download: number } {
    return this.#sums.get(`${user} ${generation}`) ?? NOTHING;
  }

  /** Appends, and answers with what the file is to be told; it may be told again with `unwritten`. */
  append(moved: readonly Moved[]): readonly Change[] {
    const entries = moved.map((one): LedgerEntry => ({ ...one, epoch: this.epoch, seq: ++this.#lastSeq }));
    for (const entry of entries) this.#put(entry);
    const folded = this.#size > this.#mostEntries ? this.#fold() : [];
    const present = new Set(folded.length === 0 ? entries : this.#epochs.get(this.epoch));
    const kept = [...entries, ...folded].filter((entry) => present.has(entry));
    const gone = this.#gone.map((key): Change => ({ part: LEDGER, key, value: null }));
    this.#gone = [];
    return [
      ...gone,
      ...kept.map((entry): Change => ({ part: LEDGER, key: keyOf(entry), value: encode(entry) })),
    ];
  }

  /** The file did not take these changes; the next ones have them again. Answers with them. */
  unwritten(changes: readonly Change[]): readonly Change[] {
    for (const { key, value } of changes) if (value === null) this.#gone.push(key);
    return changes.filter(({ value }) => value !== null);
  }

  /** The next entries to send, of one epoch, and the number behind which they are; null: there are none. */
  batch(
    most: number,
  ): { readonly epoch: number; readonly after: number; readonly entries: readonly LedgerEntry[] } | null {
    for (const [epoch, all] of this.#epochs) {
      const [first] = all;
      if (first === undefined) continue;
      const entries = all.slice(0, most);
      const last = entries.at(-1) ?? first;
      this.#sent.set(epoch, Math.max(this.#sent.get(epoch) ?? 0, last.seq));
      return { epoch, after: this.#acknowledged.get(epoch) ?? 0, entries };
    }
    return null;
  }

  /** The database has all of the epoch up to this number. Less than before: it was put back to an earlier state. */
  acknowledge(epoch: number, received: number): void {
    this.#acknowledged.set(epoch, received);
    const all = this.#epochs.get(epoch) ?? [];
    const left = all.filter(({ seq }) => seq > received);
    for (const entry of all) if (entry.seq <= received) this.#take(entry);
    if (left.length > 0 || epoch === this.epoch) this.#epochs.set(epoch, left);
    else this.#epochs.delete(epoch);
  }

  #put(entry: LedgerEntry): void {
    const all = this.#epochs.get(entry.epoch);
    if (all === undefined) this.#epochs.set(entry.epoch, [entry]);
    else all.push(entry);
    this.#add(entry, 1);
  }

  #take(entry: LedgerEntry): void {
    this.#add(entry, -1);
    this.#gone.push(keyOf(entry));
  }

  #add({ user, generation, upload, download }: LedgerEntry, sign: 1 | -1): void {
    const key = `${user} ${generation}`;
    const sum = this.#sums.get(key) ?? { upload: 0, download: 0 };
    sum.upload += sign * upload;
    sum.download += sign * download;
    if (sum.upload === 0 && sum.download === 0) this.#sums.delete(key);
    else this.#sums.set(key, sum);
    this.#size += sign;
  }

  /** One new entry for all of a user and an hour that were never sent. Answers with the new ones. */
  #fold(): readonly LedgerEntry[] {
    const own = this.#epochs.get(this.epoch) ?? [];
    const sent = this.#sent.get(this.epoch) ?? 0;
    const groups = Map.groupBy(
      own.filter(({ seq }) => seq > sent),
      ({ user, generation, atMs }) => `${user} ${generation} ${Math.floor(atMs / HOUR_MS)}`,
    );
    const folded: LedgerEntry[] = [];
    const replaced = new Set<LedgerEntry>();
    for (const group of groups.values()) {
      if (group.length < 2) continue;
      for (const entry of group) replaced.add(entry);
      folded.push(foldedOf(group, ++this.#lastSeq));
    }
    for (const entry of replaced) this.#take(entry);
    this.#epochs.set(
      this.epoch,
      own.filter((entry) => !replaced.has(entry)),
    );
    for (const entry of folded) this.#put(entry);
    return folded;
  }
}

const NOTHING = { upload: 0, download: 0 };

function foldedOf(group: readonly LedgerEntry[], seq: number): LedgerEntry {
  const last = group.at(-1);
  if (last === undefined) throw new RangeError("nothing to fold");
  const sum = (key: "upload" | "download" | "seconds") => group.reduce((total, one) => total + one[key], 0);
  return { ...last, seq, seconds: sum("seconds"), upload: sum("upload"), download: sum("download") };
}

interface StoredEntry {
  readonly user: string;
  readonly generation: number;
  readonly at: number;
  readonly seconds: number;
  readonly upload: number;
  readonly download: number;
}

/** In the order of epochs and numbers. */
function keyOf({ epoch, seq }: LedgerEntry): string {
  return `${String(epoch).padStart(12, "0")}/${String(seq).padStart(15, "0")}`;
}

function encode({ user, generation, atMs, seconds, upload, download }: LedgerEntry): Buffer {
  const stored: StoredEntry = { user, generation, at: atMs, seconds, upload, download };
  return Buffer.from(JSON.stringify(stored));
}

function decode(key: string, value: Buffer): LedgerEntry {
  const [, epoch = "", seq = ""] = /^(\d{12})\/(\d{15})$/.exec(key) ?? [];
  const { user, generation, at, seconds, upload, download }: StoredEntry = JSON.parse(value.toString());
  const numbers = [generation, at, seconds, upload, download];
  const isSound = epoch !== "" && numbers.every((one) => Number.isSafeInteger(one) && one >= 0);
  if (!isSound) throw new StoreError(`ledger entry ${key}: the record contradicts itself`);
  const moved = { user, generation, atMs: at, steadyMs: null, seconds, upload, download };
  return { ...moved, epoch: Number(epoch), seq: Number(seq) };
}
