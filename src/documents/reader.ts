/**
 * Lists that come from elsewhere, read away from the event loop: a large one in a thread of its own, which is ended where
 * it wants more time or memory than its bounds. Then the caller's old contents stay in use.
 */
import { ConfigError, messageOf } from "#core/errors.ts";
import { Slices } from "#core/slices.ts";
import { openThread } from "#platform/thread.ts";
import { readListParts, type ListKind, type ListParts } from "#providers/rule-set/read.ts";
import type { ReadReply, ReadRequest } from "./messages.ts";
import { contentIn, unpackContent, type Content } from "./node-list.ts";

/** Smaller documents are read at once, in a few milliseconds: a thread takes some hundred to start. */
const SMALL_BYTES = 16 * 1024;
/** Two million names take some ten seconds on a slow machine. */
const MOST_MS = 60_000;
/** Of objects; the bytes of the document and of tables come on top, in proportion to its length. */
const MOST_HEAP_MIB = 1024;

export interface ReaderBounds {
  readonly smallBytes: number;
  readonly mostMs: number;
  readonly mostHeapMiB: number;
}

const BOUNDS: ReaderBounds = { smallBytes: SMALL_BYTES, mostMs: MOST_MS, mostHeapMiB: MOST_HEAP_MIB };

export class DocumentReader {
  readonly #bounds: ReaderBounds;
  readonly #slices = new Slices();
  /** One thread at a time, so that the bounds hold for all together; callers are as many as providers. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(bounds: ReaderBounds = BOUNDS) {
    this.#bounds = bounds;
  }

  /** Throws `ConfigError` or `ProtocolError`. `bytes` are copied and stay the caller's. */
  async readList(bytes: Uint8Array, kind: ListKind): Promise<ListParts> {
    if (bytes.length <= this.#bounds.smallBytes) return readListParts(bytes, kind);
    const reply = await this.#read({ bytes, kind });
    if (reply.about !== "list") throw new ConfigError(faultOf(reply));
    return reply.parts;
  }

  /** The nodes of a proxy provider; otherwise as `readList`. Of a large content only whole nodes have places. */
  async readNodes(bytes: Uint8Array): Promise<Content> {
    if (bytes.length <= this.#bounds.smallBytes) return contentIn(bytes);
    const reply = await this.#read({ bytes, kind: null });
    if (reply.about !== "nodes") throw new ConfigError(faultOf(reply));
    return unpackContent(reply.content, this.#slices);
  }

  #read(request: ReadRequest): Promise<ReadReply> {
    const done = this.#last.then(() => this.#readInThread(request));
    this.#last = done.catch(() => undefined); // the caller has it
    return done;
  }

  async #readInThread(request: ReadRequest): Promise<ReadReply> {
    const { mostMs, mostHeapMiB } = this.#bounds;
    const { promise, resolve, reject } = Promise.withResolvers<ReadReply>();
    const thread = openThread(
      { from: import.meta.url, source: "worker.ts", built: "document-thread.mjs" },
      {
        name: "document",
        workerData: request,
        stdin: false,
        resourceLimits: { maxOldGenerationSizeMb: mostHeapMiB },
      },
    );
    const refuse = (why: string): void => reject(new ConfigError(why));
    const timer = setTimeout(() => refuse(`reading it took more than ${mostMs / 1000} s`), mostMs);
    thread
      .on("message", resolve)
      .on("error", (error) => refuse(outOfMemory(error, mostHeapMiB) ?? messageOf(error)))
      .on("exit", () => refuse("the thread that read it has ended"));
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      await thread.terminate(); // the next one begins when the memory of this one is free
    }
  }
}

function faultOf(reply: ReadReply): string {
  return reply.about === "fault" ? reply.fault : `the thread answered with ${reply.about}`;
}

function outOfMemory(error: unknown, mostHeapMiB: number): string | null {
  const isIt = (error as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY";
  return isIt ? `reading it took more than ${mostHeapMiB} MiB of memory` : null;
}
