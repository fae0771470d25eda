/** What a change of the configuration means for programs that watch: how it went, listeners, certificates near their end. */
import { X509Certificate } from "node:crypto";
import type { Config } from "#config/config.ts";
import { messageOf } from "#core/errors.ts";
import type { EventSinks } from "#core/events.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Running } from "#journal/journal.ts";
import type { Runtime } from "#runtime/runtime.ts";
import { postWebhook } from "#runtime/webhook-post.ts";
import { VERSION } from "#version.ts";

export interface RuntimeReportsEnv {
  readonly files: Pick<SafeFiles, "readPem">;
  readonly events: Pick<EventSinks, "config" | "listener" | "certificate">;
  /** The one in force; null before the first. */
  readonly runtime: () => Runtime | null;
}

const SOON_MS = 14 * 86_400_000;
/** Certificates are looked at twice a day, and after each change. */
const LOOK_MS = 12 * 3_600_000;

export class RuntimeReports implements Disposable {
  readonly #env: RuntimeReportsEnv;
  readonly #timer = setInterval(() => void this.#lookAtCertificates(), LOOK_MS).unref();

  /** What the journal needs of the program: webhooks go by DIRECT of the runtime in force. */
  readonly running: Running = {
    version: VERSION,
    send: async (request, signal) => {
      const runtime = this.#env.runtime();
      if (runtime === null) throw new Error("nothing is in force yet");
      return postWebhook(request, { dialer: runtime.outbounds.direct, trust: runtime.trust }, signal);
    },
  };

  constructor(env: RuntimeReportsEnv) {
    this.#env = env;
  }

  /** Rejects as `change` does. `source`: start, file, path, payload or patch. */
  async report(source: string, change: () => Promise<void>): Promise<void> {
    const { events, runtime } = this.#env;
    const before = runtime()?.config ?? null;
    try {
      await change();
    } catch (error) {
      events.config(source, messageOf(error));
      throw error;
    }
    events.config(source, null);
    this.#reportListeners(before);
    void this.#lookAtCertificates();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #reportListeners(before: Config | null): void {
    const { events, runtime } = this.#env;
    const { config, inbounds } = runtime() ?? {};
    const running = new Set(inbounds?.all.map(({ name }) => name));
    const wanted = new Set(config?.listeners.map(({ name }) => name));
    for (const name of wanted)
      events.listener(name, running.has(name) ? null : "it could not be opened; the log says why");
    for (const { name } of before?.listeners ?? [])
      if (!wanted.has(name)) events.listener(name, "it is not in the configuration any more");
  }

  /** Never rejects: what cannot be read is an error of the listener itself. */
  async #lookAtCertificates(): Promise<void> {
    const { listeners = [], tls } = this.#env.runtime()?.config ?? {};
    await this.#lookAt("controller", tls?.certificate ?? "");
    for (const { name, options } of listeners)
      if ("certificate" in options && typeof options.certificate === "string")
        await this.#lookAt(name, options.certificate);
  }

  async #lookAt(owner: string, textOrPath: string): Promise<void> {
    if (textOrPath === "") return;
    const { files, events } = this.#env;
    try {
      const endsAtMs = new X509Certificate(await files.readPem(textOrPath)).validToDate.getTime();
      if (endsAtMs - Date.now() < SOON_MS) events.certificate(owner, endsAtMs);
    } catch {
      // said where it is used
    }
  }
}
