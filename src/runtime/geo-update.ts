/** Downloads the databases in use again: on request, and at the configured interval. */
import type { Config } from "#config/config.ts";
import { ABORTED, INTERRUPTED, ApiError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { GEO_FILES, type Geodata } from "#geodata/geodata.ts";
import type { GeoKind } from "#geodata/opened-file.ts";
import { replaceFile } from "#providers/replace-file.ts";
import type { Fetch } from "./downloads.ts";

const MOST_BYTES = 256 * 1024 * 1024;
const TIMEOUT_MS = 90_000;
const HOUR_MS = 3_600_000;
const RETRY_MS = 600_000;
/** While a file is missing, the first time; then twice as long each time. */
const MISSING_RETRY_MS = 10_000;
/** Clocks are set meanwhile, so nothing is waited for longer than this without another look. */
const LOOK_MS = HOUR_MS;

export interface GeoUpdaterEnv {
  readonly geodata: Geodata;
  readonly options: Pick<Config["geodata"], "geoAutoUpdate" | "geoUpdateInterval" | "geoxUrl">;
  readonly fetch: Fetch;
  readonly log: Log;
  /** Puts another file in use by `apply`; rejects with what that throws. */
  changeRouting(apply: () => void): Promise<void>;
}

export class GeoUpdater implements AsyncDisposable {
  readonly #env: GeoUpdaterEnv;
  readonly #stop = new AbortController();
  #running: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;

  constructor(env: GeoUpdaterEnv) {
    this.#env = env;
  }

  /** A file that rules need and that is not there is fetched in any case, also where they come to need it later. */
  activate(): void {
    this.#schedule(this.#dueInMs());
    this.#env.geodata.whenMissing(() => {
      if (this.#failures === 0 && this.#running === null) this.#schedule(0);
    });
  }

  /** Throws `ApiError` 500; files that failed stay as they were, those that did not are in use. */
  async update(): Promise<void> {
    if (this.#running !== null) throw new ApiError(500, "geodata: an update is running already");
    return this.#run([...this.#env.geodata.used]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    this.#stop.abort(ABORTED);
    await this.#running?.catch(() => {}); // the caller that started it gets the error
  }

  #run(kinds: readonly GeoKind[]): Promise<void> {
    this.#running = this.#updateAll(kinds).finally(() => (this.#running = null));
    return this.#running;
  }

  async #updateAll(kinds: readonly GeoKind[]): Promise<void> {
    const faults: string[] = [];
    for (const kind of kinds)
      await this.#updateOne(kind).catch((error: unknown) =>
        faults.push(
          `${GEO_FILES[kind].target}: ${this.#stop.signal.aborted ? INTERRUPTED : messageOf(error)}`,
        ),
      );
    if (faults.length > 0) throw new ApiError(500, `geodata: ${faults.join("; ")}; the old stays in use`);
  }

  async #updateOne(kind: GeoKind): Promise<void> {
    const { geodata, options, fetch, log } = this.#env;
    await geodata.refuseStrange(kind); // before anything is downloaded for nothing
    const url = options.geoxUrl[GEO_FILES[kind].urlKey];
    const download = { url, proxy: "", headers: {}, timeoutMs: TIMEOUT_MS, maxBytes: MOST_BYTES, etag: null };
    const { body } = await fetch(download, this.#stop.signal);
    this.#stop.signal.throwIfAborted();
    const { path } = geodata.pathOf(kind);
    let use = (_path: string): void => {};
    await replaceFile(path, body as Uint8Array, async (temporary) => {
      use = await geodata.verify(kind, temporary);
    });
    await this.#env.changeRouting(() => use(path));
    log.info(`${path}: updated, ${(body as Uint8Array).length} bytes`);
  }

  /**
   * Until the file is `geo-update-interval` old, and no longer than that: the clock may be wrong, or have been when the
   * file was written. A missing one is due now. Null: never.
   */
  #dueOf(kind: GeoKind): number | null {
    const { geodata, options } = this.#env;
    const { changedAtMs } = geodata.pathOf(kind);
    if (changedAtMs === null) return 0;
    if (!options.geoAutoUpdate) return null;
    const intervalMs = options.geoUpdateInterval * HOUR_MS;
    return Math.min(intervalMs, Math.max(0, changedAtMs + intervalMs - Date.now()));
  }

  #isAhead(kind: GeoKind): boolean {
    const { changedAtMs } = this.#env.geodata.pathOf(kind);
    return this.#env.options.geoAutoUpdate && changedAtMs !== null && changedAtMs > Date.now();
  }

  #dueInMs(): number | null {
    const dues = [...this.#env.geodata.used].map((kind) => this.#dueOf(kind)).filter((due) => due !== null);
    return dues.length === 0 ? null : Math.min(...dues);
  }

  #schedule(waitMs: number | null): void {
    if (waitMs === null || this.#stop.signal.aborted) return;
    clearTimeout(this.#timer);
    const lookInMs = Math.min(waitMs, LOOK_MS);
    const look = (): void => {
      if (waitMs === lookInMs || this.#dueInMs() === 0) void this.#tick();
      else this.#schedule(waitMs - lookInMs);
    };
    this.#timer = setTimeout(look, lookInMs).unref();
  }

  /** What is due, and what no clock can tell the age of: that has been waited for. */
  async #tick(): Promise<void> {
    try {
      const due = [...this.#env.geodata.used].filter(
        (kind) => this.#dueOf(kind) === 0 || this.#isAhead(kind),
      );
      if (due.length > 0) await (this.#running ?? this.#run(due));
      this.#failures = 0;
      this.#schedule(this.#dueInMs());
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#env.log.warning(messageOf(error));
      const lacks = [...this.#env.geodata.used].some(
        (kind) => this.#env.geodata.pathOf(kind).changedAtMs === null,
      );
      this.#schedule(lacks ? Math.min(RETRY_MS, MISSING_RETRY_MS * 2 ** this.#failures++) : RETRY_MS);
    }
  }
}
