/** What is going on now, and how much has gone through since the start. */
import type { Duplex } from "node:stream";
import { ABORTED, type DialError } from "#core/errors.ts";
import type { EndedConnection, EndReason, LiveConnection, LiveConnections } from "#core/live.ts";
import type { Direction } from "#core/meter.ts";
import { PassingMap } from "#lib/passing-map.ts";
import type { Decision } from "#core/router.ts";
import type { Metadata } from "#core/session.ts";
import type { Resettable } from "./backend.ts";
import { EndedRing, seenOf } from "./ended-ring.ts";

const MOST_DETAIL_CHARACTERS = 300;

/** One row, visible until it is disposed of. */
export class LiveEntry implements LiveConnection, Disposable {
  readonly metadata: Metadata;
  decision: Decision | null = null;
  uploadBytes = 0;
  downloadBytes = 0;
  /** Of the outbound's stream. An engine may take the stream away, so it is asked for once, at the beginning. */
  remoteAddress = "";
  /** By the monotonic clock, whole ms. Null: datagrams, or the dial is still in progress. */
  dialledAtMs: number | null = null;
  readonly #table: LiveTable;
  #abort: AbortController | null = null;
  #closed = false;
  #reason: EndReason = "over";
  #detail = "";
  /** Reset by `close`: for a connection that has no use for a signal. */
  resets: Resettable | null = null;

  constructor(table: LiveTable, metadata: Metadata) {
    this.#table = table;
    this.metadata = metadata;
  }

  get startedAtMs(): number {
    return this.metadata.acceptedAtMs;
  }

  /** Null: there is no stream from which to read the peer's address. */
  dialled(remote: Duplex | null): void {
    this.dialledAtMs = Math.trunc(performance.now());
    // Kernel sockets have it, and streams that took one over.
    const { remoteAddress } = (remote ?? {}) as { readonly remoteAddress?: string };
    if (remoteAddress !== undefined) this.remoteAddress = remoteAddress;
  }

  /** Aborted by `close`: all work for this connection stops. */
  get signal(): AbortSignal {
    if (this.#abort === null) {
      this.#abort = new AbortController();
      if (this.#closed) this.#abort.abort(ABORTED);
    }
    return this.#abort.signal;
  }

  count(direction: Direction, bytes: number): void {
    if (direction === "upload") this.uploadBytes += bytes;
    else this.downloadBytes += bytes;
    this.#table.count(direction, bytes);
  }

  /** Why it will have ended, in an error's own words where there are any. The first one counts. */
  because(reason: EndReason, detail = ""): void {
    if (this.#reason !== "over") return;
    this.#reason = reason;
    this.#detail = detail.slice(0, MOST_DETAIL_CHARACTERS);
  }

  notDialled({ message }: DialError): void {
    if (this.decision?.outbound.rejects === true) this.because("rejected");
    else this.because("not-dialled", message);
  }

  /** What is kept of it. */
  ended(): EndedConnection {
    const { metadata, decision, uploadBytes, downloadBytes, remoteAddress } = this;
    return {
      metadata,
      decision: decision === null ? null : seenOf(decision),
      uploadBytes,
      downloadBytes,
      remoteAddress,
      endedAtMs: Date.now(),
      reason: this.#reason,
      detail: this.#detail,
    };
  }

  close(reason: EndReason = "closed"): void {
    this.because(reason);
    this.#closed = true;
    this.#abort?.abort(ABORTED);
    this.resets?.reset();
  }

  [Symbol.dispose](): void {
    this.#table.remove(this);
  }
}

/** What is called before the table is read. Neither throws. */
export interface LiveSources {
  /** Before totals are read: workers report what they have moved. It must be cheap. */
  look(): void;
  /** Before rows are read: workers report the connections that the main thread does not know yet. */
  beforeRead(): void;
  /** Once, behind the first thousand connections: what serves them will run often. */
  onMany?(): void;
}

const MANY = 1_000;

const NO_SOURCES: LiveSources = { look() {}, beforeRead() {} };

export class LiveTable implements LiveConnections {
  readonly #sources: LiveSources;
  readonly #entries = new PassingMap<string, LiveEntry>();
  readonly #ended = new EndedRing();
  #endedCount = 0;
  #uploadTotalBytes = 0;
  #downloadTotalBytes = 0;

  constructor(sources: LiveSources = NO_SOURCES) {
    this.#sources = sources;
  }

  open(metadata: Metadata): LiveEntry {
    const entry = new LiveEntry(this, metadata);
    this.#entries.set(metadata.id, entry);
    return entry;
  }

  /** Workers have decided and relayed those of which the main thread hears at their end. */
  get ended(): Iterable<EndedConnection> {
    this.#sources.beforeRead();
    return this.#ended;
  }

  /** One that is a row no more, or never was. */
  keepEnded(connection: EndedConnection): void {
    this.#ended.push(connection);
    if (++this.#endedCount === MANY) this.#sources.onMany?.();
  }

  /** Has the totals and the rows' counts include what workers have moved. Cheap. */
  look(): void {
    this.#sources.look();
  }

  get size(): number {
    this.#sources.beforeRead();
    return this.#entries.size;
  }

  get uploadTotalBytes(): number {
    this.#sources.look();
    return this.#uploadTotalBytes;
  }

  get downloadTotalBytes(): number {
    this.#sources.look();
    return this.#downloadTotalBytes;
  }

  [Symbol.iterator](): Iterator<LiveEntry> {
    this.#sources.beforeRead();
    this.#sources.look();
    return this.#entries.values();
  }

  count(direction: Direction, bytes: number): void {
    if (direction === "upload") this.#uploadTotalBytes += bytes;
    else this.#downloadTotalBytes += bytes;
  }

  close(id: string): boolean {
    const entry = this.#entries.get(id);
    entry?.close();
    return entry !== undefined;
  }

  closeAll(which: (connection: LiveEntry) => boolean = () => true, reason?: EndReason): number {
    this.#sources.beforeRead();
    const doomed = [...this.#entries.values()].filter(which); // closing removes rows: not while walking them
    for (const entry of doomed) entry.close(reason);
    return doomed.length;
  }

  remove(entry: LiveEntry): void {
    if (this.#entries.get(entry.metadata.id) !== entry) return;
    this.#entries.delete(entry.metadata.id);
    this.keepEnded(entry.ended());
  }
}
