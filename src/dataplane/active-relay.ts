import type { Duplex } from "node:stream";
import type { Direction, Meter } from "#core/meter.ts";
import { reportDial, type Decision } from "#core/router.ts";
import { ANSWERS_LATE } from "#core/stream.ts";
import { parseIp } from "#net/address/ip.ts";
import type { RelayOwner } from "./backend.ts";
import { matched } from "./connection-log.ts";
import type { LiveEntry } from "./connections.ts";
import type { SessionEnv } from "./session-env.ts";

/** A connection that has reached its destination. */
export interface DialledConnection {
  /** With its decision, and without a `remote` with the remote address. */
  readonly entry: LiveEntry;
  /** Null: a worker has the socket. */
  readonly remote: Duplex | null;
  /** The loop detector's note of the dial; null: it keeps none. */
  readonly noted: Disposable | null;
  /** Called when the connection has ended. */
  readonly onEnd: () => void;
}

/** What is kept of a connection while its bytes move: there are thousands, so neither session nor streams. */
export class ActiveRelay implements RelayOwner, Disposable {
  readonly meter: Meter;
  readonly #entry: LiveEntry;
  readonly #noted: Disposable | null;
  readonly #onEnd: () => void;
  /** What became of the dial is not yet known. */
  #isUnanswered: boolean;

  /** Reports, logs and meters a connection from here on. */
  constructor({ entry, remote, noted, onEnd }: DialledConnection, env: SessionEnv) {
    const { metadata } = entry;
    const decision = entry.decision as Decision;
    this.#entry = entry;
    this.#noted = noted;
    this.#onEnd = onEnd;
    this.#isUnanswered = remote !== null && ANSWERS_LATE in remote;
    if (!this.#isUnanswered) reportDial(decision, null);
    entry.dialled(remote);
    env.flows.connected(decision, () => parseIp(entry.remoteAddress));
    env.log.info(() => matched(metadata, decision));
    this.meter = env.ledger.open(metadata, decision); // never throws; a failed dial is no session
  }

  onBytes(direction: Direction, bytes: number): void {
    this.#entry.count(direction, bytes);
  }

  /** The outbound failed by itself. */
  onRemoteLost(error: Error): void {
    this.#report(error);
    this.#entry.because("remote-lost", error.message);
  }

  onSilent(): void {
    this.#entry.because("silent");
  }

  #report(error: Error | null): void {
    const { decision, downloadBytes } = this.#entry;
    if (!this.#isUnanswered || decision === null) return;
    this.#isUnanswered = false;
    if (downloadBytes > 0) reportDial(decision, null);
    else if (error !== null) reportDial(decision, error);
  }

  onEnded(): void {
    this.#report(null);
    this[Symbol.dispose]();
    this.#entry.resets = null;
    this.#entry[Symbol.dispose]();
    this.#onEnd();
  }

  /** Where nothing was relayed: ends the accounting, and leaves the connection itself to the caller. */
  [Symbol.dispose](): void {
    this.#noted?.[Symbol.dispose]();
    this.meter[Symbol.dispose]();
  }
}
