/** Fake addresses that the old process needs and the new one gives out. */
import type { Ip } from "#core/session.ts";
import { parseIp } from "#net/address/ip.ts";
import { PeerError, type Peer } from "./peer.ts";

/** As many as questions of clients are answered at a time. At the bound one more gets no address. */
const MOST_ASKED = 4096;
/** A client asks again by then. */
const ANSWER_MS = 5_000;

interface Asked {
  readonly resolve: (ip: Ip) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

export class FakesElsewhere {
  readonly #peer: Peer;
  readonly #asked = new Map<number, Asked>();
  readonly #begun = Promise.withResolvers<void>();
  #seq = 0;

  constructor(peer: Peer) {
    this.#peer = peer;
    peer.divert("faked", ({ seq, ip }) => this.#onFaked(seq, ip));
    void peer.ended.then(() => this.#rejectAsked());
    this.#begun.promise.catch(() => {}); // perhaps none is waiting
  }

  /** The new process serves. */
  begin(): void {
    this.#begun.resolve();
  }

  /** There is none, and the addresses are given out here again: whatever waits is rejected. */
  end(): void {
    this.#begun.reject(new PeerError("it gives out no addresses"));
    this.#rejectAsked();
  }

  #rejectAsked(): void {
    for (const seq of this.#asked.keys()) this.#settle(seq)?.reject(new PeerError("it has ended"));
  }

  /** Waits for the new process to serve. Rejects with `PeerError`. */
  readonly allocate = async (family: 4 | 6, host: string): Promise<Ip> => {
    await this.#begun.promise;
    if (!this.#peer.isOpen || this.#asked.size >= MOST_ASKED)
      throw new PeerError("it gives out no addresses");
    const { promise, resolve, reject } = Promise.withResolvers<Ip>();
    const seq = ++this.#seq;
    this.#peer.say({ kind: "fake", seq, family, host });
    const timer = setTimeout(() => this.#settle(seq)?.reject(new PeerError("it does not answer")), ANSWER_MS);
    this.#asked.set(seq, { resolve, reject, timer: timer.unref() });
    return promise;
  };

  #onFaked(seq: number, text: string | null): void {
    const asked = this.#settle(seq);
    const ip = text === null ? null : parseIp(text);
    if (ip === null) asked?.reject(new PeerError("it gives that name no address"));
    else asked?.resolve(ip);
  }

  #settle(seq: number): Asked | null {
    const asked = this.#asked.get(seq) ?? null;
    this.#asked.delete(seq);
    if (asked !== null) clearTimeout(asked.timer);
    return asked;
  }
}
