/** The life of a TCP conversation whose client a relay thread has: the thread dials and relays, here it is decided. */
import type { DialError } from "#core/errors.ts";
import type { WorkerConnection, DialEvents, DialPlan, CachedRoute } from "#core/held.ts";
import type { Direction, Meter } from "#core/meter.ts";
import { dialOf, reportDial, type Decision } from "#core/router.ts";
import type { Ip, Metadata, StreamSession } from "#core/session.ts";
import type { RelayOwner } from "./backend.ts";
import type { LiveEntry } from "./connections.ts";
import { HTTP_PORT } from "./redirect.ts";
import { resumeSession, type SessionEnv } from "./session.ts";
import { matched } from "./connection-log.ts";
import { type RoutedAnswer, cachedRoute } from "./cached-route.ts";

/** `over` is called at the end. What a thread cannot do goes the way of all others, with the client taken from it. */
export function serveWorkerConnection(
  session: StreamSession,
  held: NonNullable<StreamSession["offloaded"]>,
  env: SessionEnv,
  over: () => void,
): void {
  const entry = env.live.open(session.metadata);
  new WorkerDial(held.client, env, entry, over).start(session, held.words);
}

/** For a client that was served by a standing answer: it is connected. */
function serveJoined(client: WorkerConnection, metadata: Metadata, by: RoutedAnswer, env: SessionEnv): void {
  env.enter();
  const entry = env.live.open(metadata);
  entry.decision = by.decision;
  entry.remoteAddress = by.ip;
  goOnHeld(client, entry, env, { noted: null, over: env.leave });
}

/** What is called at the end of one. */
interface Ends {
  /** By the loop guard. */
  readonly noted: Disposable | null;
  readonly over: () => void;
}

/** It is connected, and `entry` says by which decision and to where. */
function goOnHeld(client: WorkerConnection, entry: LiveEntry, env: SessionEnv, ends: Ends): void {
  const { backend, flows, ledger, log } = env;
  const { metadata, remoteAddress } = entry;
  const decision = entry.decision as Decision;
  reportDial(decision, null);
  entry.dialled(null);
  flows.connected(decision, () => remoteAddress as Ip);
  log.info(() => matched(metadata, decision));
  const meter = ledger.open(metadata, decision);
  entry.resets = backend?.resume?.(client, meter, env, new WorkerFlow(entry, meter, ends)) ?? null;
}

/** What stays of each while its bytes move: there are thousands. */
class WorkerFlow implements RelayOwner {
  readonly #entry: LiveEntry;
  readonly #meter: Meter;
  readonly #noted: Disposable | null;
  readonly #over: () => void;

  constructor(entry: LiveEntry, meter: Meter, { noted, over }: Ends) {
    this.#entry = entry;
    this.#meter = meter;
    this.#noted = noted;
    this.#over = over;
  }

  onBytes(direction: Direction, bytes: number): void {
    this.#entry.count(direction, bytes);
  }

  onEnded(): void {
    this.#noted?.[Symbol.dispose]();
    this.#entry.resets = null;
    this.#meter[Symbol.dispose]();
    this.#entry[Symbol.dispose]();
    this.#over();
  }
}

/** Until it is connected. */
class WorkerDial implements DialEvents {
  readonly #env: SessionEnv;
  readonly #entry: LiveEntry;
  readonly #over: () => void;
  readonly #client: WorkerConnection;
  #words: Uint8Array | null = null;
  /** Null: nothing is left to be told to the client. */
  #session: StreamSession | null = null;
  #decision: Decision | null = null;
  #isFirstOfMany = false;
  #limited = false;
  /** By the loop guard. */
  #noted: Disposable | null = null;
  #isOver = false;

  constructor(client: WorkerConnection, env: SessionEnv, entry: LiveEntry, over: () => void) {
    this.#client = client;
    this.#env = env;
    this.#entry = entry;
    this.#over = over;
  }

  start(session: StreamSession, words: Uint8Array): void {
    const { backend, sniffer } = this.#env;
    this.#session = session;
    this.#words = words;
    const isSniffed = sniffer?.wants(this.#entry.metadata) === true;
    if (isSniffed || backend?.resume === undefined) return this.#take(null);
    this.#client.events = this;
    this.#entry.resets = this.#client;
    try {
      const decision = this.#env.router.decide?.(this.#entry.metadata) ?? null;
      if (decision === null) void this.#findOut();
      else this.#decided(decision);
    } catch (error) {
      this.#take(error);
    }
  }

  /** Never rejects. */
  async #findOut(): Promise<void> {
    const { metadata, signal } = this.#entry;
    try {
      const decision = await this.#env.router.route(metadata, signal);
      if (!this.#isOver) this.#decided(decision);
    } catch (error) {
      this.#take(error);
    }
  }

  /** Throws what makes the dial fail. */
  #decided(decision: Decision): void {
    this.#decision = this.#entry.decision = decision;
    const turn = this.#env.loops.beforeCheck(this.#entry.metadata);
    if (turn === null) this.#findWay(decision);
    else void turn.then(() => this.#findWay(decision)).catch((error: unknown) => this.#take(error));
  }

  /** Throws likewise. */
  #findWay(decision: Decision): void {
    if (this.#isOver) return;
    const { ledger, loops } = this.#env;
    const { destination, outbound } = decision;
    loops.check(this.#entry.metadata, decision);
    const reach = this.#env.reach.of(this.#entry.metadata, decision);
    this.#limited = ledger.free !== true;
    // A client that is redirected instead is answered by us.
    const way =
      this.#limited && destination.port === HTTP_PORT
        ? null
        : (outbound.plain?.(dialOf(decision), reach, () => this.#entry.signal) ?? null);
    if (way === null) return this.#take(null);
    if (way instanceof Promise)
      way
        .then((found) => (found === null ? this.#take(null) : this.#dial(found)))
        .catch((error: unknown) => this.#take(error));
    else this.#dial(way);
  }

  #dial(way: DialPlan): void {
    if (this.#isOver) return;
    const { flows, loops } = this.#env;
    const decision = this.#decision as Decision;
    if (!way.isFirstOfMany) flows.decided(decision);
    this.#noted = loops.dials(decision, this.#client, way);
    this.#isFirstOfMany = way.isFirstOfMany;
    this.#entry.remoteAddress = way.ip;
    if (this.#words !== null)
      this.#client.dial(way, this.#words, this.#limited, this.#standing(decision, way));
  }

  #standing(decision: Decision, { ip }: DialPlan): CachedRoute | null {
    return this.#limited ? null : cachedRoute(this.#entry.metadata, { decision, ip }, this.#env, serveJoined);
  }

  dialled(): void {
    this.#session = this.#words = null;
    this.#isOver = true; // of this; what goes on is another one's
    goOnHeld(this.#client, this.#entry, this.#env, { noted: this.#noted, over: this.#over });
  }

  /** Of one address of several: all of them have their chance. */
  failed(error: DialError): void {
    this.#take(this.#isFirstOfMany ? null : error);
  }

  ended(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#noted?.[Symbol.dispose]();
    this.#entry.resets = null;
    this.#entry[Symbol.dispose]();
    this.#over();
  }

  #take(failure: unknown): void {
    const session = this.#session;
    if (this.#isOver || session === null) return;
    this.#session = null;
    this.#noted?.[Symbol.dispose]();
    this.#client.events = null;
    this.#entry.resets = null;
    const begun = { entry: this.#entry, decision: this.#decision, failure };
    void resumeSession(session, this.#env, begun).then(this.#over);
  }
}
