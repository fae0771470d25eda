/** What failed, kept over restarts: an authority that has refused is not asked again at once because weir begins anew. */
import * as z from "zod";
import { readRecord, writeRecord } from "./our-files.ts";
import { waitBehindMs } from "./schedule.ts";

const attempt = z.object({ failures: z.int().min(1), nextMs: z.number() });
const record = z.object({ failed: z.record(z.string(), attempt) });

type Failed = Readonly<Record<string, z.infer<typeof attempt>>>;

/** By the names of certificate files. */
export class Attempts {
  readonly #file: string;
  #failed: Failed;

  private constructor(file: string, failed: Failed) {
    this.#file = file;
    this.#failed = failed;
  }

  /** Throws `ConfigError` where the file is none of ours. */
  static async open(file: string): Promise<Attempts> {
    const read = record.safeParse(await readRecord(file));
    return new Attempts(file, read.success ? read.data.failed : {});
  }

  /** Before that nothing is ordered; 0: nothing has failed. */
  nextMs(certificate: string): number {
    return this.#failed[certificate]?.nextMs ?? 0;
  }

  /** When it is tried again. `askedMs`: what the authority asked to wait. */
  async fail(certificate: string, nowMs: number, askedMs: number): Promise<number> {
    const failures = (this.#failed[certificate]?.failures ?? 0) + 1;
    const nextMs = nowMs + waitBehindMs(failures, askedMs, Math.random());
    await this.#keep({ ...this.#failed, [certificate]: { failures, nextMs } });
    return nextMs;
  }

  async succeed(certificate: string): Promise<void> {
    if (this.#failed[certificate] === undefined) return;
    const { [certificate]: _, ...others } = this.#failed;
    await this.#keep(others);
  }

  async #keep(failed: Failed): Promise<void> {
    this.#failed = failed;
    await writeRecord(this.#file, { failed });
  }
}
