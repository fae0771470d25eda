/** Sessions with nftables. Tables made with the flag `owner` end with the session, or with the process. */
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

/** Callers wait for their answers, so few are queued; beyond this a caller is refused. */
const MOST_WAITING = 1024;
const SHOWN_BYTES = 400;

/** A thread with the library, for as many sessions as are wanted; it ends with the process, or with a fault of its own. */
export class NftThread {
  readonly #worker = openThread(
    { from: import.meta.url, source: "worker.ts", built: "nft-worker" },
    { name: "nftables", stdin: false },
  );
  readonly #waiting: Waiting[] = [];
  readonly #lost = Promise.withResolvers<Error>();
  #ended: Error | null = null;
  #sessions = 0;

  private constructor() {
    const worker = this.#worker;
    worker.unref(); // an idle thread must not keep the process alive
    worker.on("message", (reply: NftReply) => this.#answered(reply));
    worker.on("error", (error) => this.#end(new NftError("nftables: the session failed", { cause: error })));
    worker.on("exit", () => this.#end(new NftError("nftables: the session has ended")));
  }

  /** Throws `NftError` where libnftables is missing or cannot be used. */
  static async open(): Promise<NftThread> {
    const thread = new NftThread();
    await thread.#answer();
    return thread;
  }

  get hasEnded(): boolean {
    return this.#ended !== null;
  }

  /** Throws `NftError`. */
  async openSession(): Promise<NftSession> {
    const session = ++this.#sessions;
    await this.#ask({ session, commands: "" });
    let closed: Error | null = null;
    return {
      run: async (commands) => {
        if (closed !== null) throw closed;
        return this.#ask({ session, commands });
      },
      lost: this.#lost.promise,
      [Symbol.asyncDispose]: async () => {
        if (closed !== null) return;
        closed = new NftError("nftables: the session is closed");
        await this.#ask({ session, commands: null }).catch(() => {}); // the thread ended before: what it owned is gone as well
      },
    };
  }

  async #ask(request: NftRequest): Promise<string> {
    if (this.#ended !== null) throw this.#ended;
    if (this.#waiting.length >= MOST_WAITING)
      throw new NftError(`nftables: ${MOST_WAITING} batches wait already`);
    this.#worker.postMessage(request);
    this.#worker.ref();
    try {
      return await this.#answer();
    } finally {
      if (this.#waiting.length === 0) this.#worker.unref();
    }
  }

  #answer(): Promise<string> {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }

  #answered({ output, failure }: NftReply): void {
    const first = this.#waiting.shift();
    if (failure === null) first?.resolve(output);
    else first?.reject(new NftError(`nftables: ${failure.slice(0, SHOWN_BYTES)}`));
  }

  #end(error: Error): void {
    if (this.#ended !== null) return;
    this.#ended = error;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    this.#lost.resolve(error);
  }
}
