/**
 * Lists that come from elsewhere, read away from the event loop: a large one in a thread of its own, which is ended where
 * it wants more time or memory than its bounds. Then the caller's old contents stay in use.
 */
import type { Worker } from "node:worker_threads";
import type { Slices } from "#core/slices.ts";
import { readListParts, type ListKind, type ListParts } from "#providers/rule-set/read.ts";
import { sendBytes } from "./bytes.ts";
import type { ListReply, ListRequest, NodesReply, NodesRequest } from "./messages.ts";
import { unpack } from "./packed.ts";
import { contentIn, unpackContent, type Content } from "./node-list.ts";
import { ReadingThread, type ThreadBounds } from "./thread.ts";

/**
 * Smaller documents are read at once, in 15 ms whatever they say (16 KiB of small maps took 60): a thread takes some hundred
 * to start.
 */
const SMALL_BYTES = 4 * 1024;
/** Two million names take some ten seconds on a slow machine. */
const MOST_MS = 60_000;
const MOST_HEAP_MIB = 1024;

export interface ReaderBounds extends ThreadBounds {
  readonly smallBytes: number;
}

const BOUNDS: ReaderBounds = { smallBytes: SMALL_BYTES, mostMs: MOST_MS, mostHeapMiB: MOST_HEAP_MIB };

const LISTS = { from: import.meta.url, source: "list-worker.ts", built: "list-thread" };
const NODES = { from: import.meta.url, source: "node-worker.ts", built: "node-thread" };

export class DocumentReader {
  readonly #bounds: ReaderBounds;
  readonly #slices: Slices;
  readonly #onRead: () => void;
  readonly #lists: ReadingThread;
  readonly #nodes: ReadingThread;
  /** One document at a time, so that the bounds hold for all together; callers are as many as providers. */
  #last: Promise<void> = Promise.resolve();

  /** `onRead` is called behind each document that was read in a thread: what it took can be given back. */
  constructor(slices: Slices, onRead: () => void, bounds: ReaderBounds = BOUNDS) {
    this.#slices = slices;
    this.#onRead = onRead;
    this.#bounds = bounds;
    this.#lists = new ReadingThread(LISTS, { what: "reading it", bounds });
    this.#nodes = new ReadingThread(NODES, { what: "reading it", bounds });
  }

  /** Throws `ConfigError` or `ProtocolError`. `bytes` are copied and stay the caller's. */
  async readList(bytes: Uint8Array, kind: ListKind): Promise<ListParts> {
    if (bytes.length <= this.#bounds.smallBytes) return readListParts(bytes, kind);
    const request: ListRequest = { length: bytes.length, kind };
    const { parts } = await this.#read<ListReply>(this.#lists, request, bytes);
    if (!("lines" in parts)) return parts;
    return { lines: (await unpack(parts.lines, this.#slices)) as readonly string[] };
  }

  /** The nodes of a proxy provider; otherwise as `readList`. Of a large content only whole nodes have places. */
  async readNodes(bytes: Uint8Array): Promise<Content> {
    if (bytes.length <= this.#bounds.smallBytes) return contentIn(bytes);
    const request: NodesRequest = { length: bytes.length };
    const { content } = await this.#read<NodesReply>(this.#nodes, request, bytes);
    return unpackContent(content, this.#slices);
  }

  #read<Reply>(thread: ReadingThread, request: object, bytes: Uint8Array): Promise<Reply> {
    const send = (worker: Worker): Promise<void> => sendBytes(worker, bytes, this.#slices);
    const done = this.#last.then(() => thread.ask<Reply>(request, { send }));
    this.#last = done.then(this.#onRead, this.#onRead); // keeps neither the answer nor the error: the caller has them
    return done;
  }
}
