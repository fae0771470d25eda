import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Endpoint, Ip } from "#core/session.ts";
import { ownAddresses } from "#net/address/own-address.ts";
import type { RelayBackend } from "./backend.ts";
import type { DecisionSource, FoundDial } from "./decision-source.ts";
import {
  openWorkerBackend,
  type WorkerBackend,
  type WorkerBackendOptions,
} from "./workers/main/worker-backend.ts";
import type { QuicWorker } from "./workers/main/worker-pool.ts";
import { thisMachine, workerCount, type WorkerCount } from "./worker-count.ts";

export interface RelaySettings {
  readonly relay: "auto" | "portable";
  /** Null: as many as suit the machine. */
  readonly workers: number | null;
}

export interface RelayPathOptions extends Pick<
  WorkerBackendOptions,
  "tlsLibrary" | "seams" | "beforeCapture"
> {
  /** The last thread of the engine has died. */
  readonly onAllDead?: () => void;
}

/**
 * Chooses the backend that relays plain connections, for the life of the program. The workers are started at their
 * first use.
 */
export class BackendChoice implements AsyncDisposable {
  readonly #log: Log;
  #engine: Promise<WorkerBackend | null> | null = null;
  #opened: WorkerBackend | null = null;
  #count: WorkerCount = { count: 0, why: "" };
  #said = "";

  readonly #options: RelayPathOptions;

  constructor(log: Log, options: RelayPathOptions) {
    this.#log = log;
    this.#options = options;
  }

  /** Null: the event loop relays everything. One line of the log says which it is, and why. Never rejects. */
  async choose({ relay, workers }: RelaySettings): Promise<RelayBackend | null> {
    if (relay === "portable") {
      this.#say("relay: the event loop alone (relay: portable)");
      return null;
    }
    const engine = await (this.#engine ??= this.#open(workers));
    if (engine === null || engine.threads === 0) return null;
    this.#say(`relay: ${this.#threadsText(engine.threads)}`);
    if (workers !== null && workers !== this.#count.count)
      this.#log.warning(`workers: ${workers} is for the next start, ${this.#count.count} were started`);
    return engine;
  }

  /** So many were started; 0: none were yet. */
  get workers(): number {
    return this.#count.count;
  }

  #threadsText(threads: number): string {
    const number = threads === 1 ? "1 worker thread" : `${threads} worker threads`;
    return `${number} (${this.#count.why}); the event loop relays what they cannot`;
  }

  /** One more thread of QUIC; null: there can be none. `onDeath` as `WorkerBackend.openQuic` has it. */
  async openQuic(onDeath: (why: string) => void): Promise<QuicWorker | null> {
    const engine = await this.#engine;
    if (engine === null || engine.threads === 0) return null;
    try {
      return await engine.openQuic(onDeath);
    } catch (error) {
      this.#log.warning(`relay: QUIC stays on the main thread: ${messageOf(error)}`);
      return null;
    }
  }

  /** Has the engine report what it has moved; see `Engine.look`. */
  look(maxAgeMs?: number): void {
    this.#opened?.look(maxAgeMs);
  }

  /** Reports all connections that workers have decided. */
  sync(): void {
    this.#opened?.reportDecided();
  }

  /** What workers have decided, and dial or have dialled between these two; null: nothing. */
  findDecided(near: Endpoint, to: Endpoint): FoundDial | null {
    return this.#opened?.findDecided(near, to) ?? null;
  }

  /** May this be an address of this machine? */
  mayBeOwn(ip: Ip): boolean {
    return this.#opened?.accepting?.mayBeOwn(ip) ?? ownAddresses().includes(ip);
  }

  /** What workers decide by has changed, rules or lists among it unless `keepsRules`: they decide nothing by what it was before, and soon by what it is. */
  invalidateDecisions(keepsRules = false): void {
    this.#opened?.invalidateDecisions(keepsRules);
  }

  /** The same, before it changes: all that was decided by what it is now is reported. */
  settleDecisions(): void {
    this.invalidateDecisions();
    this.sync();
  }

  /** Something was measured by which groups pick. */
  checkDecisions(): void {
    this.#opened?.checkDecisions();
  }

  /** Whether decisions are held back has changed; see `DecisionSource.isHeld`. */
  holdDecisions(): void {
    this.#opened?.holdDecisions();
  }

  /** From now on workers decide by what this source has, where they can. Null: they decide nothing, and have forgotten what was. */
  decideBy(source: DecisionSource | null): void {
    if (source === null) this.#opened?.stopDeciding();
    else this.#opened?.decideBy(source);
  }

  async #open(workers: number | null): Promise<WorkerBackend | null> {
    try {
      this.#count = workerCount(workers, thisMachine());
      const { onAllDead: _, ...options } = this.#options;
      const onDeath = (why: string, left: number): void => this.#died(why, left);
      this.#opened = await openWorkerBackend({ ...options, onDeath, threads: this.#count.count });
      return this.#opened;
    } catch (error) {
      this.#say(`relay: the event loop alone: ${messageOf(error)}`);
      return null;
    }
  }

  #died(why: string, threadsLeft: number): void {
    const then = threadsLeft > 0 ? `${threadsLeft} left` : "none is left, and the event loop relays";
    this.#log.error(`relay: a thread has ended, and its connections with it; ${then}: ${why}`);
    if (threadsLeft === 0) this.#options.onAllDead?.();
  }

  #say(text: string): void {
    if (this.#said !== text) this.#log.info(text);
    this.#said = text;
  }

  /** Resets what the engine still carries. */
  async [Symbol.asyncDispose](): Promise<void> {
    const engine = await this.#engine;
    await engine?.[Symbol.asyncDispose]();
  }
}
