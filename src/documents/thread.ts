/**
 * Documents in a thread, one after the other. It is ended where a document wants more time or memory than its bounds; one
 * that stayed small is kept for some seconds, because a thread takes longer to start than most documents to read.
 */
import type { Worker } from "node:worker_threads";
import { ConfigError, messageOf, errnoOf } from "#core/errors.ts";
import { openThread, type ThreadProgram } from "#platform/thread.ts";
import type { ThreadReply } from "./messages.ts";

const KEPT_MS = 10_000;
/** Of the thread's heap, with its program (some 50 MiB), behind a document; a larger one goes back to the system at once. */
const MOST_KEPT_MIB = 96;

export interface ThreadBounds {
  readonly mostMs: number;
  /** Of objects; the bytes of the document and of tables come on top, in proportion to its length. */
  readonly mostHeapMiB: number;
}

export interface ThreadOptions {
  readonly bounds: ThreadBounds;
  /** What messages begin with. */
  readonly what: string;
  readonly keptMs?: number;
}

export interface AskOptions {
  /** Breaks it off. */
  readonly signal?: AbortSignal;
  /** Sends what the thread needs beside the request. */
  readonly send?: (thread: Worker) => Promise<void>;
}

export class ReadingThread {
  readonly #program: ThreadProgram;
  readonly #options: ThreadOptions;
  #kept: Worker | null = null;
  #expiry: NodeJS.Timeout | undefined;

  constructor(program: ThreadProgram, options: ThreadOptions) {
    this.#program = program;
    this.#options = options;
  }

  /**
   * The answer to a request, for one after the other. A thread that is not kept has ended by then: the next one begins when
   * the memory of this one is free. Throws `ConfigError` where it finds a fault or exceeds a bound, or where `signal` ends it.
   */
  async ask<Reply>(request: object, { signal, send }: AskOptions = {}): Promise<Reply> {
    const { what, bounds } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<ThreadReply<Reply>>();
    const refuse = (why: string): void => reject(new ConfigError(why));
    const onAbort = (): void => refuse(`${what} was broken off`);
    const thread = this.#take();
    if (signal?.aborted === true) onAbort();
    signal?.addEventListener("abort", onAbort);
    const timer = setTimeout(() => refuse(`${what} took more than ${bounds.mostMs / 1000} s`), bounds.mostMs);
    const onError = (error: unknown): void => refuse(faultOf(error, this.#options));
    const onExit = (): void => refuse(`${what}: the thread has ended`);
    thread.on("message", resolve).on("error", onError).on("exit", onExit);
    thread.postMessage(request);
    send?.(thread).catch(reject);
    let isKept = false;
    try {
      const answer = await promise;
      if (answer.kind === "fault") throw new ConfigError(answer.fault);
      isKept = answer.heapMiB <= MOST_KEPT_MIB;
      return answer.reply;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      thread.off("message", resolve).off("error", onError).off("exit", onExit);
      if (isKept) this.#keep(thread);
      else await thread.terminate();
    }
  }

  /** Ends the thread that is kept, if one is. */
  end(): void {
    clearTimeout(this.#expiry);
    void this.#kept?.terminate();
    this.#kept = null;
  }

  #take(): Worker {
    const kept = this.#kept;
    this.#kept = null;
    clearTimeout(this.#expiry);
    if (kept === null) return this.#open();
    kept.ref();
    return kept;
  }

  #open(): Worker {
    const thread = openThread(this.#program, {
      name: "document",
      stdin: false,
      resourceLimits: { maxOldGenerationSizeMb: this.#options.bounds.mostHeapMiB },
    });
    const forget = (): void => {
      if (this.#kept === thread) this.end();
    };
    return thread.on("error", forget).on("exit", forget);
  }

  /** Until the next request, for some seconds. It keeps no program running. */
  #keep(thread: Worker): void {
    this.end();
    thread.unref();
    this.#kept = thread;
    this.#expiry = setTimeout(() => this.end(), this.#options.keptMs ?? KEPT_MS).unref();
  }
}

function faultOf(error: unknown, { what, bounds }: ThreadOptions): string {
  return errnoOf(error) === "ERR_WORKER_OUT_OF_MEMORY"
    ? `${what} took more than ${bounds.mostHeapMiB} MiB of memory`
    : messageOf(error);
}
