/** Fetches the databases in use anew: when somebody asks, and where the configuration wants it by itself. */
import type { Config } from "#config/config.ts";
import { ABORTED, ApiError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { GEO_FILES, type Geodata, type GeoKind } from "#geodata/geodata.ts";
import { replaceFile } from "#providers/replace-file.ts";
import type { Fetch } from "./downloads.ts";

const MOST_BYTES = 256 * 1024 * 1024;
const TIMEOUT_MS = 90_000;
const HOUR_MS = 3_600_000;
const RETRY_MS = 600_000;
/** Longer waits than this overflow the timers of the runtime. */
const LONGEST_WAIT_MS = 0x7fff_ffff;

export interface GeoUpdaterEnv {
  readonly geodata: Geodata;
  readonly options: Config["geodata"];
  readonly fetch: Fetch;
  readonly log: Log;
  /** Another file is about to come into use. Never rejects. */
  changing(): Promise<void>;
}

export class GeoUpdater implements AsyncDisposable {
  readonly #env: GeoUpdaterEnv;
  readonly #stop = new AbortController();
  #running: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(env: GeoUpdaterEnv) {
    this.#env = env;
  }

  activate(): void {
    if (this.#env.options.geoAutoUpdate) this.#schedule(this.#dueInMs());
  }

  /** Throws `ApiError` 500; files that failed stay as they were, those that did not are in use. */
  async update(): Promise<void> {
    if (this.#running !== null) throw new ApiError(500, "geodata: an update is running already");
    this.#running = this.#updateAll().finally(() => (this.#running = null));
    return this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    this.#stop.abort(ABORTED);
    await this.#running?.catch(() => {}); // whoever asked for it hears
  }

  async #updateAll(): Promise<void> {
    const faults: string[] = [];
    for (const kind of this.#env.geodata.used)
      await this.#updateOne(kind).catch((error: unknown) =>
        faults.push(`${GEO_FILES[kind].target}: ${messageOf(error)}`),
      );
    if (faults.length > 0) throw new ApiError(500, `geodata: ${faults.join("; ")}; the old stays in use`);
  }

  async #updateOne(kind: GeoKind): Promise<void> {
    const { geodata, options, fetch, log } = this.#env;
    geodata.refuseStrange(kind); // before anything is downloaded for nothing
    const url = options.geoxUrl[GEO_FILES[kind].urlKey];
    const download = { url, proxy: "", headers: {}, timeoutMs: TIMEOUT_MS, maxBytes: MOST_BYTES, etag: null };
    const { body } = await fetch(download, this.#stop.signal);
    this.#stop.signal.throwIfAborted();
    const { path } = geodata.pathOf(kind);
    await replaceFile(path, body as Uint8Array, (temporary) => geodata.verify(kind, temporary));
    await this.#env.changing();
    geodata.reload(kind);
    log.info(`${path}: updated, ${(body as Uint8Array).length} bytes`);
  }

  /** Until the oldest file in use is `geo-update-interval` old; a missing one is due now. Null: none is in use. */
  #dueInMs(): number | null {
    const { geodata, options } = this.#env;
    const dues = [...geodata.used].map((kind) => {
      const { changedAtMs } = geodata.pathOf(kind);
      return changedAtMs === null ? 0 : changedAtMs + options.geoUpdateInterval * HOUR_MS - Date.now();
    });
    return dues.length === 0 ? null : Math.max(0, Math.min(...dues));
  }

  #schedule(waitMs: number | null): void {
    if (waitMs === null || this.#stop.signal.aborted) return;
    this.#timer = setTimeout(() => void this.#tick(), Math.min(waitMs, LONGEST_WAIT_MS)).unref();
  }

  async #tick(): Promise<void> {
    try {
      if (this.#dueInMs() === 0) await this.update();
      this.#schedule(this.#dueInMs());
    } catch (error) {
      this.#env.log.warning(messageOf(error));
      this.#schedule(RETRY_MS);
    }
  }
}
