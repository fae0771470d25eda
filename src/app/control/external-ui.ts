/** The dashboard of `external-ui`: downloaded on request, or at the start when its folder is missing or empty. */
import { isAbsolute, relative } from "node:path";
import { finishSwap, installPages, namesIn, refuseStrangeFolder } from "#archive/install.ts";
import type { Config } from "#config/config.ts";
import { ABORTED, INTERRUPTED, ApiError, messageOf } from "#core/errors.ts";
import type { Dialer } from "#core/outbound.ts";
import type { Trust } from "#core/trust.ts";
import type { Host } from "#host/host.ts";
import { fetchResource } from "#providers/fetch.ts";
import { externalUiFolder } from "#host/ui-folder.ts";

/** Dashboards of the ecosystem are 1 to 10 MiB packed. */
const MAX_DOWNLOAD_BYTES = 64 * 1024 * 1024;
const LIMITS = { maxBytes: 256 * 1024 * 1024, maxEntries: 20_000, maxRatio: 100 };
const TIMEOUT_MS = 120_000;

export interface ExternalUiEnv {
  readonly host: Pick<Host, "home" | "files" | "log">;
  /** Those in force. */
  config(): Config;
  /** Reaches the download's server: DIRECT, names by the core's own resolver. */
  dialer(): Dialer;
  trust(): Trust;
}

export class ExternalUi implements AsyncDisposable {
  readonly #env: ExternalUiEnv;
  readonly #stop = new AbortController();
  #running: Promise<void> | null = null;

  constructor(env: ExternalUiEnv) {
    this.#env = env;
  }

  /** Throws `ApiError` 500; the dashboard that was there stays then. */
  async update(): Promise<void> {
    if (this.#running !== null) throw new ApiError(500, "external-ui: a download is running already");
    this.#running = this.#update().finally(() => (this.#running = null));
    try {
      await this.#running;
    } catch (error) {
      const why = this.#stop.signal.aborted ? INTERRUPTED : messageOf(error);
      throw new ApiError(500, `external-ui: ${why}`, { cause: error });
    }
  }

  /** Downloads in the background where a dashboard is configured and none is there; failures are logged. */
  async fetchIfMissing(): Promise<void> {
    const { host, config } = this.#env;
    const folder = externalUiFolder(config(), host.home);
    if (folder === null || this.#running !== null) return;
    const isThere = async (): Promise<boolean> => ((await namesIn(folder)) ?? []).length > 0;
    try {
      if (await isThere()) return;
      await finishSwap(folder);
      if (await isThere()) return;
      await this.update();
    } catch (error) {
      if (!this.#stop.signal.aborted) host.log.warning(messageOf(error));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(ABORTED);
    await this.#running?.catch(() => {}); // the caller that started it gets the error
  }

  async #update(): Promise<void> {
    const { host, config, dialer, trust } = this.#env;
    const { controller, general } = config();
    const wanted = externalUiFolder(config(), host.home);
    if (wanted === null) throw new Error("it is not set; the built-in dashboard comes with the program");
    const folder = host.files.resolve(wanted);
    if (holds(folder, host.home)) throw new Error(`${folder} holds the home directory`);
    await refuseStrangeFolder(folder); // before anything is downloaded for nothing
    host.log.info(`external-ui: downloading ${new URL(controller.externalUiUrl).host} to ${folder}`);
    const { body } = await fetchResource(
      {
        url: controller.externalUiUrl,
        headers: {},
        userAgent: general.globalUa,
        etag: null,
        dialer: dialer(),
        trust: trust(),
        timeoutMs: TIMEOUT_MS,
        maxBytes: MAX_DOWNLOAD_BYTES,
      },
      this.#stop.signal,
    );
    this.#stop.signal.throwIfAborted();
    await installPages(body as Uint8Array, folder, LIMITS);
    host.log.info(`external-ui: ${folder} holds the new dashboard`);
  }
}

function holds(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return !way.startsWith("..") && !isAbsolute(way);
}
