/** One TUN with kernel-direct on: what it has learnt, and the kernel objects that act on it. */
import type { Log } from "#core/log.ts";
import type { InboundInfo, Ip } from "#core/session.ts";
import { LearnedBook, type BookCounts } from "./learned-book.ts";
import type { Plane } from "./plane.ts";
import { Publisher } from "./publisher.ts";

export interface ConsumerOptions {
  readonly maxEntries: number;
  /** The listener whose traffic it saves: its own proxy and rules decide. */
  readonly inbound: Pick<InboundInfo, "ruleList" | "target">;
  readonly planes: readonly Plane[];
  readonly log: Log;
  readonly onEvicted: () => void;
}

export interface Sighting {
  readonly host: string;
  readonly ip: Ip;
  readonly direct: boolean;
  readonly expiresAtMs: number;
}

export class Consumer {
  readonly inbound: ConsumerOptions["inbound"];
  readonly #book: LearnedBook;
  readonly #publisher: Publisher;

  constructor({ maxEntries, inbound, planes, log, onEvicted }: ConsumerOptions) {
    this.inbound = inbound;
    this.#book = new LearnedBook(maxEntries, onEvicted);
    this.#publisher = new Publisher(this.#book, planes, log);
  }

  get counts(): BookCounts {
    return this.#book.counts;
  }

  verdict(ip: Ip): "direct" | "proxy" | null {
    return this.#book.verdict(ip);
  }

  /** Settles when the kernel knows; undefined: it knew that already. */
  learn(sightings: readonly Sighting[], nowMs: number): Promise<void> | undefined {
    for (const sighting of sightings) this.#book.observe(sighting, nowMs);
    return this.#publisher.isDone ? undefined : this.#publisher.publish();
  }

  sweep(nowMs: number): void {
    this.#book.expire(nowMs);
    if (!this.#publisher.isDone) void this.#publisher.publish();
  }

  /** Settles when the kernel holds nothing of it any more. */
  clear(): Promise<void> {
    this.#book.clear();
    return this.#publisher.publish();
  }
}
