/**
 * What a worker has decided by itself, in a row for each slot that the main thread reads; main/decided-rows.ts is its side.
 * A decision whose version has gone before the connection was made is given up.
 */
import { ADDRESS_ORIGINS, type DialTemplate } from "#core/dial-plan.ts";
import type { Destination } from "#core/session.ts";
import { ANY_V4 } from "#net/address/ip.ts";
import {
  CONNECTED,
  DIALLING,
  JOINED,
  NOT_DECIDED,
  REQUEST_TYPES,
  SERVED_ALONE,
  type VersionWord,
} from "#dataplane/workers/shared/decision-data.ts";
import type { DecisionMemory } from "#dataplane/workers/shared/decision-memory.ts";
import { SERVED } from "#dataplane/workers/shared/opcodes.ts";
import { FIRST_ACCEPTED_SLOT } from "#dataplane/workers/shared/relay-memory.ts";
import type { AtSeam } from "#dataplane/workers/shared/seams.ts";
import { Sockaddrs } from "#dataplane/workers/shared/sockaddrs.ts";
import type { Chosen } from "./chosen-way.ts";
import type { AskedConnection } from "./wish.ts";

export interface DecidedSlotsHost {
  /** An event that can wait until there is another one. */
  reportLazily(slot: number, kind: number): void;
  /** Of tests only. */
  readonly atSeam?: AtSeam | undefined;
}

export class DecidedSlots {
  readonly #decisions: DecisionMemory;
  readonly #host: DecidedSlotsHost;
  readonly #word: VersionWord;
  readonly #sockaddrs = new Sockaddrs();
  /** By slot, from the first of the worker's own on: how its connection is dialled, if it was decided here. */
  readonly #ways: (DialTemplate | null)[] = [];

  constructor(decisions: DecisionMemory, host: DecidedSlotsHost, word: VersionWord) {
    this.#decisions = decisions;
    this.#host = host;
    this.#word = word;
  }

  /** It is decided, and about to be dialled at `to`. */
  note(
    asked: AskedConnection,
    { host }: Destination,
    { found, way, seen, wants }: Chosen,
    version: number,
    to: Uint8Array,
  ): void {
    const { slot, type, user, local, destination } = asked;
    const { target, list, position, end } = found;
    const speaks = REQUEST_TYPES.indexOf(type);
    const origin = ADDRESS_ORIGINS.indexOf(seen.from);
    const { ip, port } = destination;
    const faked = host === destination.host ? null : ip;
    const isFaked = faked === null ? 0 : 1;
    const row = [version, speaks, target, list, position, end, origin, isFaked, user] as const;
    const decisions = this.#decisions;
    decisions.write(slot, row, to, local);
    if (way.node !== undefined) {
      decisions.setWanted(slot, this.#sockaddrs.encode({ ip: seen.ip ?? ANY_V4, port: wants.port }));
    }
    if (host !== null) decisions.setName(slot, host);
    if (faked !== null) decisions.setFaked(slot, this.#sockaddrs.encode({ ip: faked, port }));
    Atomics.store(decisions.decided, slot, DIALLING);
    this.#ways[slot - FIRST_ACCEPTED_SLOT] = way;
  }

  /** How a connection that was decided here is dialled; null: it was not, or has ended. */
  wayOf(slot: number): DialTemplate | null {
    return this.#ways[slot - FIRST_ACCEPTED_SLOT] ?? null;
  }

  /**
   * Its connection is made: from now on the main thread may find it. False: the version by which it was decided has gone
   * meanwhile, and it is to be given up. The store comes before the load, and the main thread takes the version away before
   * it looks for connections: so one of the two sees the other.
   */
  commit(slot: number): boolean {
    const { decided, startedAtMs } = this.#decisions;
    const version = this.#decisions.versionOf(slot);
    startedAtMs[slot] = Date.now();
    Atomics.store(decided, slot, CONNECTED);
    this.#host.atSeam?.("committing");
    if (this.#word.present === version) return true;
    return Atomics.compareExchange(decided, slot, CONNECTED, NOT_DECIDED) === JOINED;
  }

  /** It could not be dialled, or was given up: the main thread has to decide. */
  giveUp(slot: number): void {
    this.#ways[slot - FIRST_ACCEPTED_SLOT] = null;
    Atomics.compareExchange(this.#decisions.decided, slot, DIALLING, NOT_DECIDED);
  }

  /** Its connection is over. `served`: that is reported here; `joined`: it is the main thread's; `unknown`: it was never made. */
  end(slot: number): "served" | "joined" | "unknown" {
    const { decided } = this.#decisions;
    this.giveUp(slot);
    const before = Atomics.compareExchange(decided, slot, CONNECTED, SERVED_ALONE);
    this.#host.atSeam?.("serving");
    if (before === CONNECTED) {
      this.#host.reportLazily(slot, SERVED);
      return "served";
    }
    decided[slot] = NOT_DECIDED;
    return before === JOINED ? "joined" : "unknown";
  }
}
