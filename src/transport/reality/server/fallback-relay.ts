/** Bytes between dest and who is not let in, as if nothing were in between. */
import type { Duplex } from "node:stream";
import { abortStream } from "#core/stream.ts";
import type { FallbackLimit } from "#transport/tls/fields.ts";
import type { Tap } from "./tap.ts";

const NOTHING = Buffer.alloc(0);

export interface RelayLimits {
  readonly upload: FallbackLimit | null;
  readonly download: FallbackLimit | null;
}

/** Owns both from here. `fromDest` was read already. Half-close is kept; a fault of one side is one of the other. */
export function relay(client: Tap, dest: Tap, fromDest: Buffer, limits: RelayLimits): void {
  follow(client.stream, dest.stream);
  follow(dest.stream, client.stream);
  forward(client, dest.stream, NOTHING, limits.upload);
  forward(dest, client.stream, fromDest, limits.download);
}

function follow(one: Duplex, other: Duplex): void {
  const onClose = (): void => {
    if (one.errored !== null || !one.readableEnded) abortStream(other);
  };
  if (one.destroyed) onClose();
  else one.once("close", onClose);
}

function forward(from: Tap, to: Duplex, backlog: Buffer, limit: FallbackLimit | null): void {
  const pace = limit === null || limit["bytes-per-sec"] === 0 ? null : new Pace(limit);
  const gate = new Gate(from.stream);
  const write = (bytes: Buffer): void => {
    if (to.destroyed || bytes.length === 0) return;
    if (!to.write(bytes)) gate.closeUntil((open) => to.once("drain", open));
    const waitMs = pace?.take(bytes.length, performance.now()) ?? 0;
    if (waitMs > 0) gate.closeFor(waitMs);
  };
  write(backlog);
  from.read({ data: write, end: () => to.end() });
}

/** Pauses a stream while there is any reason to. */
class Gate {
  readonly #stream: Duplex;
  #reasons = 0;

  constructor(stream: Duplex) {
    this.#stream = stream;
  }

  closeUntil(wait: (open: () => void) => void): void {
    this.#reasons++;
    this.#stream.pause();
    wait(() => {
      if (--this.#reasons === 0 && !this.#stream.destroyed) this.#stream.resume();
    });
  }

  closeFor(ms: number): void {
    this.closeUntil((open) => {
      const timer = setTimeout(open, ms);
      this.#stream.once("close", () => clearTimeout(timer));
    });
  }
}

/** Free bytes first, then a bucket that is full at the start and may go into debt by one piece. */
class Pace {
  readonly #bytesPerMs: number;
  readonly #burstBytes: number;
  #freeBytes: number;
  #leftBytes: number;
  #atMs = 0;

  constructor(limit: FallbackLimit) {
    this.#bytesPerMs = limit["bytes-per-sec"] / 1000;
    this.#burstBytes = Math.max(limit["burst-bytes-per-sec"], limit["bytes-per-sec"]);
    this.#freeBytes = limit["after-bytes"];
    this.#leftBytes = this.#burstBytes;
  }

  /** For how many ms nothing more may be read behind this piece. */
  take(bytes: number, nowMs: number): number {
    const free = Math.min(bytes, this.#freeBytes);
    this.#freeBytes -= free;
    const earned = (nowMs - this.#atMs) * this.#bytesPerMs;
    this.#leftBytes = Math.min(this.#burstBytes, this.#leftBytes + earned) - (bytes - free);
    this.#atMs = nowMs;
    return this.#leftBytes >= 0 ? 0 : Math.ceil(-this.#leftBytes / this.#bytesPerMs);
  }
}
