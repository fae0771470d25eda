/**
 * Learns from the answers that clients get and from the flows that they make which destinations are certainly DIRECT,
 * and keeps the kernel's sets in step (kernel-direct.md §2). It outlives reloads: a new runtime brings a new judge.
 */
import type { FlowWatch } from "#core/flow-watch.ts";
import type { FastPathView, LearnedSetView, LearntExplanation } from "#core/kernel-direct.ts";
import { NO_EVENTS, type KernelDirectEvents } from "#core/events.ts";
import type { Log } from "#core/log.ts";
import type { Decision } from "#core/router.ts";
import type { Ip } from "#core/session.ts";
import { explainDirect } from "./explain.ts";
import { Consumer, type ConsumerOptions, type Sighting } from "./consumer.ts";
import type { DirectClassifier } from "./direct-classifier.ts";

/** What an answer of the DNS service says, once it is found fit to learn from. */
export interface AnswerSeen {
  readonly host: string;
  readonly addresses: readonly { readonly ip: Ip; readonly ttlMs: number }[];
}

/** What a TUN that learns shows of itself. */
export interface BypassViews {
  readonly learnedSet: LearnedSetView;
  /** Null: no classifier runs. */
  readonly fastPath: FastPathView | null;
}

/** How long a flow proves its address. */
const FLOW_TTL_MS = 10 * 60_000;
const SWEEP_MS = 1000;
/** How soon a group that changed sides by itself is noticed. */
const WATCH_MS = 50;

export class KernelDirect implements FlowWatch, Disposable {
  /** Whole addresses forgotten for want of room, since the process started. */
  evictions = 0;
  /** Why the last classifier ended or could not be made; null since one was made. */
  lastError: string | null = null;
  /** One for each TUN that learns. */
  readonly bypasses = new Set<BypassViews>();
  readonly #log: Log;
  readonly #events: KernelDirectEvents;
  readonly #nowMs: () => number;
  readonly #consumers = new Set<Consumer>();
  readonly #onAnswer = (answer: AnswerSeen): Promise<void> | undefined => this.answered(answer);
  #classifier: DirectClassifier | null = null;
  #signature = "";
  #sweep: NodeJS.Timeout | undefined;
  #watch: NodeJS.Timeout | undefined;

  constructor(
    log: Log,
    events: KernelDirectEvents = NO_EVENTS,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#log = log;
    this.#events = events;
    this.#nowMs = nowMs;
  }

  /** Null: a classifier runs, as is asked for. */
  report(reason: string | null): void {
    this.lastError = reason;
    this.#events.kernelDirect(reason);
  }

  /** Null while no plane is attached. */
  get observer(): ((answer: AnswerSeen) => Promise<void> | undefined) | null {
    return this.#consumers.size === 0 ? null : this.#onAnswer;
  }

  get consumers(): Iterable<Consumer> {
    return this.#consumers;
  }

  /** Starts with nothing learnt; until `detach`. */
  attach(options: Omit<ConsumerOptions, "log" | "onEvicted">): Consumer {
    const consumer = new Consumer({ ...options, log: this.#log, onEvicted: () => void this.evictions++ });
    this.#consumers.add(consumer);
    this.#sweep ??= setInterval(() => this.#sweepAll(), SWEEP_MS).unref();
    this.#watch ??= setInterval(() => this.#clearIfStale(), WATCH_MS).unref();
    return consumer;
  }

  /** Stops learning for this plane's owner; its planes are empty when this settles. */
  async detach(consumer: Consumer): Promise<void> {
    if (!this.#consumers.delete(consumer)) return;
    if (this.#consumers.size === 0) this[Symbol.dispose]();
    await consumer.clear();
  }

  /** Nothing is learnt until `use`, and the kernel holds nothing when it settles. */
  async suspend(): Promise<void> {
    this.#classifier = null;
    await this.clear();
  }

  /**
   * Continues learning with this classifier; null: learning pauses. Everything learnt by the one before is forgotten.
   */
  use(classifier: DirectClassifier | null): void {
    this.#classifier = classifier;
    this.#signature = classifier?.signature() ?? "";
    void this.clear();
  }

  /**
   * To be awaited right before rules, lists, databases or nodes change, which must happen in the same turn: what is learnt
   * between is forgotten in the next.
   */
  async beforeRoutingChange(): Promise<void> {
    if (this.#consumers.size === 0) return;
    await this.clear();
    setImmediate(() => void this.clear());
  }

  /** The mode or a group's member may have changed: at once, instead of at the next look. */
  check(): void {
    if (this.#consumers.size > 0) this.#clearIfStale();
  }

  /** One entry for each TUN that learns. Null: no classifier is in force. */
  explain(host: string | null, addresses: readonly Ip[]): readonly LearntExplanation[] | null {
    const classifier = this.#classifier;
    if (classifier === null) return null;
    return [...this.#consumers].flatMap((consumer) =>
      explainDirect(classifier, host, addresses, consumer.inbound).map((row) => ({
        ...row,
        learnt: consumer.verdict(row.ip as Ip),
      })),
    );
  }

  /** Settles when the kernel's sets are empty. */
  async clear(): Promise<void> {
    await Promise.all(Array.from(this.#consumers, (consumer) => consumer.clear()));
  }

  /** An answer for a client: it is held until this settles. Undefined: nothing to wait for. */
  answered({ host, addresses }: AnswerSeen): Promise<void> | undefined {
    const classifier = this.#current();
    if (classifier === null) return;
    const nowMs = this.#nowMs();
    const known = addresses.filter(({ ip }) => classifier.isLearnable(ip));
    if (known.length > 0)
      return this.#learn(
        classifier,
        known.map(({ ip, ttlMs }) => ({ ip, host, name: host, expiresAtMs: nowMs + ttlMs })),
      );
    return;
  }

  decided(decision: Decision): void {
    const { ip } = decision.destination;
    if (ip !== null) this.#flow(decision, ip);
  }

  /** Where a name was dialled, or a made-up address, only now its address is known. */
  connected(decision: Decision, peer: () => Ip | null): void {
    const classifier = this.#current();
    if (classifier === null || !classifier.isDirect(decision)) return;
    const known = decision.destination.ip;
    if (known !== null && classifier.isLearnable(known)) return;
    const ip = peer();
    if (ip !== null) this.#flow(decision, ip);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#sweep);
    clearInterval(this.#watch);
    this.#sweep = this.#watch = undefined;
  }

  /** Null: no plane is attached, or no classifier is in force. */
  #current(): DirectClassifier | null {
    return this.#consumers.size === 0 ? null : this.#classifier;
  }

  #clearIfStale(): void {
    const signature = this.#classifier?.signature() ?? "";
    if (signature === this.#signature) return;
    this.#signature = signature;
    void this.clear();
  }

  #flow(decision: Decision, ip: Ip): void {
    const classifier = this.#current();
    if (classifier === null || !classifier.isDirect(decision) || !classifier.isLearnable(ip)) return;
    const name = decision.destination.host;
    // A sniffed name that was not dialled proves nothing of the address: a client can write any.
    if (decision.sniffedHost !== undefined && name === null) return;
    const expiresAtMs = this.#nowMs() + FLOW_TTL_MS;
    void this.#learn(classifier, [{ ip, host: name ?? ip, name, expiresAtMs }]);
  }

  #learn(
    classifier: DirectClassifier,
    found: readonly (Omit<Sighting, "direct"> & { name: string | null })[],
  ): Promise<void> | undefined {
    const nowMs = this.#nowMs();
    const learnt = Array.from(this.#consumers, (consumer) =>
      consumer.learn(
        found.map(({ ip, host, name, expiresAtMs }) => ({
          ip,
          host,
          direct: classifier.classify(name, ip, consumer.inbound).direct,
          expiresAtMs,
        })),
        nowMs,
      ),
    );
    const waits = learnt.filter((wait) => wait !== undefined);
    return waits.length === 0 ? undefined : Promise.all(waits).then(() => {});
  }

  #sweepAll(): void {
    for (const consumer of this.#consumers) consumer.sweep(this.#nowMs());
  }
}
