/** One long-lived conversation with nftables. The tables that it makes with the flag `owner` end with the process. */
import { openThread } from "#platform/thread.ts";
import type { NftReply, NftRequest } from "./worker.ts";

/** A batch that the kernel or the library refused; nothing of it was done. */
export class NftError extends Error {
  override readonly name = "NftError";
}

export interface NftSession extends AsyncDisposable {
  /**
   * Runs a batch of commands as one transaction, behind those before it, and answers with what `list` prints. Throws
   * `NftError`.
   */
  run(commands: string): Promise<string>;
  /** Settles when the session ended by itself; what it owned is gone then. */
  readonly lost: Promise<Error>;
}

interface Waiting {
  readonly resolve: (output: string) => void;
  readonly reject: (error: Error) => void;
}

/** Callers wait for their answer, so there are few; beyond this somebody does not, and is refused. */
const MOST_WAITING = 1024;
const SHOWN_BYTES = 400;

/** Throws `NftError` where libnftables is missing or cannot be used. */
export async function openNftSession(): Promise<NftSession> {
  const worker = openThread(import.meta.url, "nft-worker.mjs", { name: "nftables", stdin: false });
  worker.unref(); // nobody waits for a thread that has nothing to do
  const lost = Promise.withResolvers<Error>();
  const waiting: Waiting[] = [];
  let ended: Error | null = null;
  const end = (error: Error): void => {
    if (ended !== null) return;
    ended = error;
    for (const { reject } of waiting.splice(0)) reject(error);
    lost.resolve(error);
  };
  const answer = (): Promise<string> => new Promise((resolve, reject) => waiting.push({ resolve, reject }));
  worker.on("message", ({ output, failure }: NftReply) => {
    const first = waiting.shift();
    if (failure === null) first?.resolve(output);
    else first?.reject(new NftError(`nftables: ${failure.slice(0, SHOWN_BYTES)}`));
  });
  worker.on("error", (error) => end(new NftError("nftables: the session failed", { cause: error })));
  worker.on("exit", () => end(new NftError("nftables: the session has ended")));
  const ask = async (request: NftRequest): Promise<string> => {
    if (ended !== null) throw ended;
    if (waiting.length >= MOST_WAITING) throw new NftError(`nftables: ${MOST_WAITING} batches wait already`);
    worker.postMessage(request);
    worker.ref();
    try {
      return await answer();
    } finally {
      if (waiting.length === 0) worker.unref();
    }
  };
  await answer();
  return {
    run: ask,
    lost: lost.promise,
    async [Symbol.asyncDispose]() {
      if (ended !== null) return;
      await ask(null).catch(() => {}); // it ended before: what it owned is gone as well
      ended ??= new NftError("nftables: the session is closed"); // on purpose: it is not lost
      await worker.terminate();
    },
  };
}
