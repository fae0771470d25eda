/** One document in a thread of its own, which is ended where it wants more time or memory than its bounds. */
import type { Worker } from "node:worker_threads";
import { ConfigError, messageOf, errnoOf } from "#core/errors.ts";
import { openThread, type ThreadProgram } from "#platform/thread.ts";
import type { FaultReply } from "./messages.ts";

export interface ThreadBounds {
  readonly mostMs: number;
  /** Of objects; the bytes of the document and of tables come on top, in proportion to its length. */
  readonly mostHeapMiB: number;
}

export interface ThreadOptions {
  /** Breaks it off. */
  readonly signal?: AbortSignal;
  /** Sends what the thread needs beside `workerData`. */
  readonly send?: (thread: Worker) => Promise<void>;
}

/**
 * The first message of the thread, when it has ended: the next one begins when the memory of this one is free. Throws
 * `ConfigError` where it finds a fault or exceeds a bound, which `what` begins, or where `signal` ends it.
 */
export async function answerOfThread<Reply extends object>(
  program: ThreadProgram,
  what: string,
  workerData: unknown,
  { mostMs, mostHeapMiB }: ThreadBounds,
  { signal, send }: ThreadOptions = {},
): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply | FaultReply>();
  const thread = openThread(program, {
    name: "document",
    workerData,
    stdin: false,
    resourceLimits: { maxOldGenerationSizeMb: mostHeapMiB },
  });
  const refuse = (why: string): void => reject(new ConfigError(why));
  const onAbort = (): void => refuse(`${what} was broken off`);
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort);
  const timer = setTimeout(() => refuse(`${what} took more than ${mostMs / 1000} s`), mostMs);
  thread
    .on("message", resolve)
    .on("error", (error) =>
      refuse(isOutOfMemory(error) ? `${what} took more than ${mostHeapMiB} MiB of memory` : messageOf(error)),
    )
    .on("exit", () => refuse(`${what}: the thread has ended`));
  send?.(thread).catch(reject);
  try {
    const reply = await promise;
    if (isFault(reply)) throw new ConfigError(reply.fault);
    return reply;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    await thread.terminate();
  }
}

function isOutOfMemory(error: unknown): boolean {
  return errnoOf(error) === "ERR_WORKER_OUT_OF_MEMORY";
}

function isFault(reply: object): reply is FaultReply {
  return "fault" in reply;
}
