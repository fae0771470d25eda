/**
 * The highest generation that was acknowledged, in a small file beside a store's two: where both are older together, as
 * after a snapshot was restored, it tells. Written in place behind each commit, without a synchronisation of its own: what
 * a power cut takes of it is its last seconds, and it never says more than the medium has.
 */
import { closeSync, constants, existsSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { messageOf } from "#core/errors.ts";
import type { Rollback } from "#core/rollback.ts";
import { crc32c } from "./crc32c.ts";
import { checkFile, lockStore } from "./file-safety.ts";
import type { StoreOptions } from "./store-options.ts";

export const MARK_SUFFIX = ".seen";
export const MARK_MAGIC = Buffer.from("weir-seen ");
/** Less than a sector, so it is written whole or not at all. */
export const MARK_BYTES = 128;

interface Mark {
  readonly generation: number;
  readonly rollback: Rollback | null;
}

export class HighMark implements Disposable {
  readonly #path: string;
  readonly #log: StoreOptions["log"];
  readonly #descriptor: number;
  readonly #rollback: Rollback | null;
  #failed = false;

  private constructor(path: string, log: StoreOptions["log"], descriptor: number, rollback: Rollback | null) {
    this.#path = path;
    this.#log = log;
    this.#descriptor = descriptor;
    this.#rollback = rollback;
  }

  /** `found`: the generation of the newer file; `kept`: that both have. Null where it cannot be kept; the log says so. Throws what `checkFile` does. */
  static open({ path, nowMs, log }: StoreOptions, found: number, kept: number): HighMark | null {
    const file = path + MARK_SUFFIX;
    checkFile(file);
    let descriptor: number;
    try {
      descriptor = openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600);
    } catch (error) {
      log.warning(`${messageOf(error)}; files that are both older will not be noticed`);
      return null;
    }
    const mark = read(descriptor);
    let rollback = mark?.rollback ?? null;
    const isBack = mark !== null && found < mark.generation;
    if (isBack) {
      rollback ??= { seenGeneration: mark.generation, foundGeneration: found, sinceMs: Math.trunc(nowMs()) };
      log.error(
        `${path}: STATE HAS GONE BACK: generation ${mark.generation} was acknowledged, both files are at ${found}; all that it holds is of then. weir accept-rollback says that this is meant`,
      );
    } else if (rollback !== null)
      log.error(
        `${path}: state went back from generation ${rollback.seenGeneration} to ${rollback.foundGeneration}, and this was not accepted yet (weir accept-rollback)`,
      );
    const opened = new HighMark(file, log, descriptor, rollback);
    opened.note(isBack ? found : Math.max(kept, mark?.generation ?? 0));
    return opened;
  }

  /** Acknowledged, in both files. Never throws. */
  note(generation: number): void {
    try {
      writeSync(this.#descriptor, encode({ generation, rollback: this.#rollback }), 0, MARK_BYTES, 0);
      this.#failed = false;
    } catch (error) {
      if (!this.#failed)
        this.#log.warning(
          `${this.#path}: ${messageOf(error)}; files that are both older will not be noticed`,
        );
      this.#failed = true;
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

/** Null: the store has not gone back, or that was accepted. Throws where the file cannot be read. */
export function rollbackOf(path: string): Rollback | null {
  checkFile(path + MARK_SUFFIX);
  if (!existsSync(path + MARK_SUFFIX)) return null;
  const descriptor = openSync(path + MARK_SUFFIX, "r");
  try {
    return read(descriptor)?.rollback ?? null;
  } finally {
    closeSync(descriptor);
  }
}

/** Accepts the present content of the files. Throws `StoreError` while another process has the store open. */
export function acceptRollback(path: string): void {
  using _lock = lockStore(path);
  checkFile(path + MARK_SUFFIX);
  rmSync(path + MARK_SUFFIX, { force: true });
}

/** MAGIC {json} CRC(8 hexadecimal digits), filled up with blanks. */
function encode({ generation, rollback }: Mark): Buffer {
  const back = rollback && [rollback.seenGeneration, rollback.foundGeneration, rollback.sinceMs];
  const body = Buffer.from(JSON.stringify([generation, back]));
  const sum = Buffer.from(crc32c(body).toString(16).padStart(8, "0"));
  return Buffer.concat([MARK_MAGIC, sum, body, Buffer.alloc(MARK_BYTES, " ")], MARK_BYTES);
}

/** Of a mark: its generation; the one seen, the one found and since when, where an older file has come back. */
type StoredMark = readonly [
  generation: number,
  back: readonly [seenGeneration: number, foundGeneration: number, sinceMs: number] | null,
];

/** Null: empty or damaged. Then nothing is known, and the next commit begins anew. */
function read(descriptor: number): Mark | null {
  const bytes = Buffer.alloc(MARK_BYTES);
  const length = readSync(descriptor, bytes, 0, MARK_BYTES, 0);
  const sumAt = MARK_MAGIC.length;
  const body = bytes
    .subarray(sumAt + 8, length)
    .toString("latin1")
    .trimEnd();
  const sum = bytes.toString("latin1", sumAt, sumAt + 8);
  if (crc32c(Buffer.from(body)) !== Number.parseInt(sum, 16)) return null;
  const [generation, back]: StoredMark = JSON.parse(body);
  if (back === null) return { generation, rollback: null };
  const [seenGeneration, foundGeneration, sinceMs] = back;
  return { generation, rollback: { seenGeneration, foundGeneration, sinceMs } };
}
