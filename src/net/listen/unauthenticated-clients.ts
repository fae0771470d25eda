import type { AcceptedConnection, Followed } from "#core/accepted.ts";
import type { UnauthenticatedClient, UnauthenticatedClients } from "#core/inbound.ts";
import type { Ip } from "#core/session.ts";
import { MemoryRelease } from "#platform/memory-release.ts";
import { PendingLimiter, type PendingBounds, type PendingEntry } from "./pending-limiter.ts";
import { bytesOfIp } from "#net/address/ip.ts";

/** What one weighs here: its socket, streams and timers, with TLS the library's object. Measured, rounded up. */
const CLIENT_BYTES = 8 * 1024;
const TLS_BYTES = 64 * 1024;
/** Beyond it the oldest are destroyed: each has had the time in which so many others came. */
const BOUNDS: PendingBounds = { count: 4096, bytes: 64 * 1024 * 1024 };

/** The clients of all listeners that the event loop serves and that have not authenticated yet. */
export class UnauthenticatedPool implements UnauthenticatedClients {
  readonly #crowd: PendingLimiter;
  readonly #memory = new MemoryRelease();

  constructor(bounds = BOUNDS) {
    this.#crowd = new PendingLimiter(bounds);
  }

  get size(): number {
    return this.#crowd.size;
  }

  enter(client: Pick<AcceptedConnection, "source" | "follow">, speaksTls: boolean): UnauthenticatedClient {
    const bytes = speaksTls ? TLS_BYTES : CLIENT_BYTES;
    const visit = new Visit(this.#crowd, { source: sourceKey(client.source.ip), bytes }, () => {
      if (this.#crowd.takeSettled()) this.#memory.soon();
    });
    client.follow((one) => visit.follow(one));
    return visit;
  }
}

/** One client, by one stream or session after the other. */
class Visit implements UnauthenticatedClient {
  readonly #crowd: PendingLimiter;
  readonly #what: { readonly source: string; readonly bytes: number };
  readonly #onEnd: () => void;
  #present: Followed | null = null;
  #member: PendingEntry | null = null;
  #isOver = false;

  constructor(crowd: PendingLimiter, what: { source: string; bytes: number }, onEnd: () => void) {
    this.#crowd = crowd;
    this.#what = what;
    this.#onEnd = onEnd;
  }

  follow(one: Followed): void {
    if (this.#isOver) return;
    this.#present = one;
    if (one.closed) return this.leave();
    one.once("close", () => {
      if (this.#present === one) this.leave();
    });
    const { source, bytes } = this.#what;
    this.#member ??= this.#crowd.enter(source, bytes, () => this.#giveWay());
  }

  grow(bytes: number): void {
    if (this.#member !== null) this.#crowd.grow(this.#member, bytes);
  }

  /** Later: it may be in the middle of what another one of its connection does. */
  #giveWay(): void {
    setImmediate(() => this.#present?.destroy());
  }

  leave(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#member !== null) this.#crowd.leave(this.#member);
    this.#onEnd();
  }
}

/** The key of one source: an IPv4 address, or the 64 bits of IPv6 that one customer has. */
export function sourceKey(ip: Ip): string {
  const bytes = bytesOfIp(ip);
  return bytes.length === 4 ? ip : Buffer.from(bytes.subarray(0, 8)).toString("latin1");
}
