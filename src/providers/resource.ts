/**
 * One list that comes from elsewhere and changes while the program runs: a download kept in a file, a watched file, or
 * text of the configuration. What it brings is trusted with nothing: it is read into memory and put to use before it
 * replaces the file, and whatever goes wrong on the way leaves the old contents in use.
 */
import { utimes } from "node:fs/promises";
import { ABORTED, INTERRUPTED, messageOf, errnoOf } from "#core/errors.ts";
import type { ProviderEvents } from "#core/events.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import type { Fetched } from "./fetch.ts";
import { hashOf, noteWritten, readNewest, readRegular, targetOf, type WrittenBook } from "./own-copy.ts";
import { replaceFile } from "./replace-file.ts";
import { watchFile } from "./watch-file.ts";

export interface Source {
  /** For messages: `rule provider ads`. */
  readonly title: string;
  readonly type: "http" | "file" | "inline";
  readonly url: string | null;
  /** Relative to the home directory; "" for inline. */
  readonly path: string;
  /** 0: never. */
  readonly intervalSeconds: number;
  readonly maxBytes: number;
}

/** New contents, ready to be used. Exactly one of the two is called. */
export interface Prepared {
  /** From now on they are in use. Synchronous, never throws. */
  commit(): void;
  abandon(): Promise<void>;
}

export interface ResourceEnv {
  readonly files: SafeFiles;
  readonly log: Log;
  readonly nowMs: () => number;
  fetch(etag: string | null, signal: AbortSignal): Promise<Fetched>;
  /** Reads and builds; throws where the bytes are not what they should be. */
  prepare(bytes: Uint8Array): Promise<Prepared>;
  /** From the `payload` of the configuration; null: it has none. */
  readonly preparePayload: (() => Promise<Prepared>) | null;
  /** ETags that hold for a file with this SHA-256. Null: `etag-support` is off. */
  readonly etags: EtagBook | null;
  readonly written: WrittenBook;
  /** Puts other contents in use by `apply`; rejects with what that throws. */
  changeRouting(apply: () => void): Promise<void>;
  /** Absent: nothing is reported. */
  readonly events?: ProviderEvents;
  /** The header `subscription-userinfo` of a download that was used. */
  onUserInfo?(text: string): void;
}

export interface EtagBook {
  get(url: string, contentHash: string): string | null;
  set(url: string, contentHash: string, etag: string): void;
}

/** Failed downloads are tried again after 10, 20, 40 … seconds, at most this. */
const FIRST_RETRY_MS = 10_000;
const LAST_RETRY_MS = 3_600_000;
/** Clocks are set meanwhile, so no download is waited for longer than this without another look. */
const LOOK_MS = 3_600_000;

export class Resource implements AsyncDisposable {
  readonly #source: Source;
  readonly #env: ResourceEnv;
  readonly #stop = new AbortController();
  /** SHA-256 of the file in use; "" while something else or nothing is. */
  #hash = "";
  #updatedAtMs: number | null = null;
  #isAwaited: boolean;
  #timer: NodeJS.Timeout | undefined;
  #watcher: Disposable | null = null;
  #failures = 0;
  #running: Promise<void> | null = null;

  constructor(source: Source, env: ResourceEnv) {
    this.#source = source;
    this.#env = env;
    this.#isAwaited = source.type === "http";
  }

  /** When the contents in use were last known to be the newest; null: there are none. */
  get updatedAtMs(): number | null {
    return this.#updatedAtMs;
  }

  /** There is no file, and the first download has neither succeeded nor failed. */
  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  /** Takes over what another one of the same source knows of its contents. */
  inherit(from: Resource): void {
    this.#hash = from.#hash;
    this.#updatedAtMs = from.#updatedAtMs;
    this.#isAwaited = from.#isAwaited;
  }

  /** Uses the contents on disk or in the configuration, without a download. Never throws: faults are logged. */
  async load(): Promise<void> {
    const { type, title } = this.#source;
    if (type !== "inline" && (await this.#loadFile())) return;
    if (this.#env.preparePayload === null) return;
    try {
      (await this.#env.preparePayload()).commit();
      this.#updatedAtMs = type === "inline" ? this.#env.nowMs() : null;
    } catch (error) {
      this.#env.log.warning(`${title}: payload: ${messageOf(error)}`);
    }
  }

  /** From here on it keeps itself fresh: downloads in their interval, the file when it changes. */
  activate(): void {
    const { type, title } = this.#source;
    if (type === "http") this.#schedule(this.#dueInMs());
    if (type === "file")
      this.#watcher = watchFile(this.#env.files.resolve(this.#source.path), this.#env.log, () => {
        void this.update().catch((error: unknown) => {
          if (!this.#stop.signal.aborted) this.#keptOld(title, error);
        });
      });
  }

  /** Resolves once the first download, which begins now where it has not, has succeeded or failed. */
  async firstLoad(): Promise<void> {
    if (this.#isAwaited) await this.update().catch(() => {}); // logged by the refresh, which joins it
  }

  /** Loads anew, now. A call while one runs joins it. Throws with the old contents in use. */
  update(): Promise<void> {
    this.#running ??= this.#updateOrSay().finally(() => (this.#running = null));
    return this.#running;
  }

  /** Whatever is interrupted fails with words of its own, which do not say that a reload was the cause. */
  async #updateOrSay(): Promise<void> {
    const { events } = this.#env;
    const { title, type } = this.#source;
    try {
      await this.#update();
      if (type === "http") events?.provider(title, null);
    } catch (error) {
      if (!this.#stop.signal.aborted) {
        if (this.#isAwaited) await this.#env.changeRouting(() => (this.#isAwaited = false));
        events?.provider(title, messageOf(error));
        throw error;
      }
      throw new Error(`${this.#source.title}: ${INTERRUPTED}; nothing of it is in use`, { cause: error });
    }
  }

  /** Ends refreshing; the contents stay as they are. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    this.#watcher?.[Symbol.dispose]();
    this.#stop.abort(ABORTED);
    await this.#running?.catch(() => {}); // the caller that started it gets the error
  }

  async #loadFile(): Promise<boolean> {
    const { title, type } = this.#source;
    try {
      const { bytes, changedAtMs } = await this.#read();
      await this.#use(bytes, await hashOf(bytes), null);
      this.#updatedAtMs = changedAtMs;
      return true;
    } catch (error) {
      const isMissing = errnoOf(error) === "ENOENT";
      if (!isMissing || type === "file")
        this.#env.log.warning(`${title}: ${this.#source.path}: ${messageOf(error)}`);
      return false;
    }
  }

  /** No more than the interval: the clock may be wrong, or have been when the file was written. */
  #dueInMs(): number | null {
    if (this.#updatedAtMs === null) return 0;
    const intervalMs = this.#source.intervalSeconds * 1000;
    const leftMs = Math.max(0, this.#updatedAtMs + intervalMs - this.#env.nowMs());
    return intervalMs === 0 ? null : Math.min(leftMs, intervalMs);
  }

  #schedule(waitMs: number | null): void {
    clearTimeout(this.#timer);
    if (waitMs === null || this.#stop.signal.aborted) return;
    const lookInMs = Math.min(waitMs, LOOK_MS);
    const look = (): void => {
      if (waitMs === lookInMs || this.#dueInMs() === 0) void this.#refresh();
      else this.#schedule(waitMs - lookInMs);
    };
    this.#timer = setTimeout(look, lookInMs).unref();
  }

  async #refresh(): Promise<void> {
    const intervalMs = this.#source.intervalSeconds * 1000;
    try {
      await this.update();
      this.#failures = 0;
      this.#schedule(this.#dueInMs());
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      const mostMs = intervalMs === 0 ? LAST_RETRY_MS : Math.min(intervalMs, LAST_RETRY_MS);
      const retryMs = Math.max(FIRST_RETRY_MS, Math.min(FIRST_RETRY_MS * 2 ** this.#failures++, mostMs));
      this.#keptOld(`${this.#source.title}: tried again in ${retryMs / 1000} s`, error);
      this.#schedule(retryMs);
    }
  }

  #keptOld(title: string, error: unknown): void {
    const rest = this.#updatedAtMs === null ? "there are no contents yet" : "the old contents stay in use";
    this.#env.log.warning(`${title}: ${messageOf(error)}; ${rest}`);
  }

  async #update(): Promise<void> {
    const { type } = this.#source;
    if (type === "inline") return;
    if (type === "http") await this.#download();
    else {
      const { bytes, changedAtMs } = await this.#read();
      const hash = await hashOf(bytes);
      if (hash !== this.#hash) await this.#use(bytes, hash, null);
      this.#updatedAtMs = changedAtMs;
    }
  }

  async #download(): Promise<void> {
    const { url, path, title } = this.#source;
    const { etags, files, log, nowMs, onUserInfo } = this.#env;
    const known = this.#hash === "" ? null : (etags?.get(url as string, this.#hash) ?? null);
    const { body, etag, userInfo } = await this.#env.fetch(known, this.#stop.signal);
    this.#stop.signal.throwIfAborted();
    const hash = body === null ? this.#hash : await hashOf(body);
    if (body !== null && hash !== this.#hash) {
      await this.#use(body, hash, path);
      log.info(`${title}: updated, ${body.length} bytes`);
    } else await this.#touch(files.resolve(path), nowMs());
    this.#updatedAtMs = nowMs();
    if (etag !== null) etags?.set(url as string, this.#hash, etag);
    if (userInfo !== null) onUserInfo?.(userInfo);
  }

  /** Builds, writes where `path` is not null, and only then lets the old contents go. */
  async #use(bytes: Uint8Array, hash: string, path: string | null): Promise<void> {
    const prepared = await this.#env.prepare(bytes);
    try {
      this.#stop.signal.throwIfAborted();
      if (path !== null) await this.#write(bytes, hash, path);
    } catch (error) {
      await prepared.abandon();
      throw error;
    }
    await this.#env.changeRouting(() => {
      this.#isAwaited = false;
      prepared.commit();
    });
    this.#hash = hash;
  }

  async #write(bytes: Uint8Array, hash: string, path: string): Promise<void> {
    const { files, written, log } = this.#env;
    const file = files.resolve(path); // again: links may lead elsewhere today
    const target = await targetOf(file, this.#source.maxBytes, written);
    if (target !== file)
      log.info(`${this.#source.title}: ${path} is not weir's and stays; kept in ${target}`);
    noteWritten(written, target, hash);
    await replaceFile(target, bytes);
  }

  /** The age of the file is when it was last known to be the newest; that of a file of others is left alone. */
  async #touch(file: string, nowMs: number): Promise<void> {
    const target = await targetOf(file, this.#source.maxBytes, this.#env.written);
    const found = await readRegular(target, this.#source.maxBytes).catch(() => null);
    if (found === null || (await hashOf(found.bytes)) !== this.#hash) return;
    await utimes(target, nowMs / 1000, nowMs / 1000);
  }

  #read(): ReturnType<typeof readRegular> {
    const { path, maxBytes, type } = this.#source;
    const file = this.#env.files.resolve(path);
    return type === "http" ? readNewest(file, maxBytes) : readRegular(file, maxBytes);
  }
}
