/** Orders the certificates that the configuration in force asks for, and renews them. Listeners read the files again by themselves. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Duplex } from "node:stream";
import { folderOfDirectory, type AcmeSettings, type WantedCertificate } from "#core/acme.ts";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import type { Log } from "#core/log.ts";
import type { KeyPair } from "#core/tls.ts";
import { makeSelfSigned } from "#transport/tls/self-signed.ts";
import { Attempts } from "./attempts.ts";
import type { ChallengeBook } from "./challenge-book.ts";
import type { Refusals } from "./library.ts";
import { readCertificate, writeCertificate, type KeptCertificate } from "./our-files.ts";
import { LOOK_MS, renewalDueMs } from "./schedule.ts";

export interface KeeperEnv {
  readonly files: Pick<SafeFiles, "resolve">;
  readonly log: Log;
  readonly challenges: ChallengeBook;
  readonly userAgent: string;
  /** The stream to a server of https by the configuration in force, its certificate verified. */
  connect(url: URL, settings: AcmeSettings, signal: AbortSignal): Promise<Duplex>;
}

/** What a configuration asks for. */
export interface Asked {
  /** Null: there is no `acme` block, and nothing is wanted. */
  readonly acme: AcmeSettings | null;
  readonly wanted: readonly WantedCertificate[];
}

const ENDED = new Error("another configuration is in force, or the program ends");

export class CertificateKeeper implements AsyncDisposable {
  readonly #env: KeeperEnv;
  #asked = "";
  #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** Issued, and not in their files yet: an authority issues few for the same names in a week. */
  readonly #unwritten = new Map<string, KeyPair>();

  constructor(env: KeeperEnv) {
    this.#env = env;
  }

  /**
   * Before listeners open: where no certificate has been issued yet, one that is signed by itself stands in, so that the
   * listener is there and can be validated. Throws `ConfigError` where a file cannot be written, or is none of ours.
   */
  async prepare({ wanted }: Asked): Promise<void> {
    const faults: string[] = [];
    for (const { owner, names, file } of wanted) {
      try {
        const path = this.#env.files.resolve(file);
        if ((await readCertificate(path)) !== null) continue;
        await writeCertificate(path, makeSelfSigned(names, Date.now()), true);
      } catch (error) {
        faults.push(`${owner}: acme: ${messageOf(error)}`);
      }
    }
    if (faults.length > 0) throw new ConfigError(faults.join("\n"));
  }

  /** From now on for this configuration. What is under way goes on where it asks for the same. */
  use(asked: Asked): void {
    const text = JSON.stringify(asked);
    if (text === this.#asked) return;
    this.#asked = text;
    this.#stop.abort(ENDED);
    this.#stop = new AbortController();
    const { acme, wanted } = asked;
    const { signal } = this.#stop;
    const before = this.#running;
    const run = async (): Promise<void> => {
      await before;
      if (acme !== null && wanted.length > 0) await this.#run(acme, wanted, signal);
    };
    this.#running = run().catch((error: unknown) => {
      if (!signal.aborted) this.#env.log.error(`acme: ${messageOf(error)}`);
    });
  }

  /** Breaks off what is under way. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(ENDED);
    await this.#running;
  }

  async #run(acme: AcmeSettings, wanted: readonly WantedCertificate[], signal: AbortSignal): Promise<void> {
    const folder = this.#env.files.resolve(folderOfDirectory(acme));
    const attempts = await Attempts.open(join(folder, "attempts"));
    while (!signal.aborted) {
      let nextMs = Date.now() + LOOK_MS;
      for (const one of wanted) {
        const againMs = await this.#look(one, acme, { attempts, signal }).catch((error: unknown) => {
          signal.throwIfAborted();
          this.#env.log.error(`acme: ${one.owner}: ${messageOf(error)}`); // its file or what is kept of failures
          return nextMs;
        });
        nextMs = Math.min(nextMs, againMs);
      }
      await sleep(Math.max(0, nextMs - Date.now()), undefined, { signal, ref: false });
    }
  }

  /** Orders it, if it is time. When it is time again. */
  async #look(
    one: WantedCertificate,
    acme: AcmeSettings,
    { attempts, signal }: { readonly attempts: Attempts; readonly signal: AbortSignal },
  ): Promise<number> {
    const { log, files } = this.#env;
    const file = files.resolve(one.file);
    const kept = await readCertificate(file);
    const dueMs = kept === null ? 0 : renewalDueMs(kept);
    const nextMs = Math.max(dueMs, attempts.nextMs(one.file));
    if (nextMs > Date.now()) return nextMs;
    const refusals = { retryAfterMs: 0, type: "" };
    try {
      const wanted = JSON.stringify([acme.directory, one.names, one.file]);
      const pair = this.#unwritten.get(wanted) ?? (await this.#order(one, acme, { refusals, signal }));
      this.#unwritten.set(wanted, pair);
      await writeCertificate(file, pair, false);
      this.#unwritten.delete(wanted);
      await attempts.succeed(one.file);
    } catch (error) {
      signal.throwIfAborted();
      const againMs = await attempts.fail(one.file, Date.now(), refusals.retryAfterMs);
      log.warning(failureText(one, kept, messageOf(error), againMs));
      return againMs;
    }
    const issued = await readCertificate(file);
    if (issued === null) throw new ConfigError(`${file} is not what was written`);
    log.info(`acme: certificate for ${one.names.join(", ")}: valid until ${dayOf(issued.untilMs)}`);
    return renewalDueMs(issued);
  }

  async #order(
    one: WantedCertificate,
    acme: AcmeSettings,
    order: { readonly refusals: Refusals; readonly signal: AbortSignal },
  ): Promise<KeyPair> {
    const { makeOrder } = await import("./make-order.ts");
    return makeOrder(one, acme, { ...this.#env, ...order });
  }
}

function failureText(
  { owner, names }: WantedCertificate,
  kept: KeptCertificate | null,
  why: string,
  againMs: number,
): string {
  const present =
    kept === null || kept.standsIn
      ? "until there is one, clients that check certificates refuse the connection"
      : `the present one is valid until ${dayOf(kept.untilMs)}`;
  const again = new Date(againMs).toISOString().slice(0, 16);
  return `acme: no certificate for ${names.join(", ")} (${owner}): ${why}; ${present}; tried again at ${again}Z`;
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
