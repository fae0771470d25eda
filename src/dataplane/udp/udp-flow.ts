/** The path of one datagram session through one leaf outbound by one rule: a row in the live table. */
import { messageOf } from "#core/errors.ts";
import type { DialError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Meter } from "#core/meter.ts";
import { dialOf, reportDial, type Decision } from "#core/router.ts";
import type { Datagram, DatagramFlow, Destination, Metadata } from "#core/session.ts";
import { DatagramQueue } from "./limits.ts";
import type { DatagramEnv } from "./datagram-env.ts";
import type { LiveEntry } from "#dataplane/connections.ts";
import { ReplyNames } from "./reply-names.ts";
import { dialFailed, matched } from "#dataplane/connection-log.ts";
import type { IdleEntry } from "#dataplane/idle-timers.ts";

export interface BranchOwner {
  /** To the client. */
  send(item: Datagram): void;
  /** `failure` is null where the branch merely came to its end. */
  branchClosed(branch: Branch, failure: DialError | null): void;
}

/** A flow to a name server is one question and one answer. */
const DNS_PORT = 53;
const DNS_IDLE_MS = 10_000;

export class Branch implements IdleEntry {
  activeAtMs = 0;
  readonly idleMs: number;
  readonly decision: Decision;
  readonly names: ReplyNames;
  readonly #env: DatagramEnv;
  readonly #owner: BranchOwner;
  readonly #entry: LiveEntry;
  readonly #waiting: DatagramQueue;
  #flow: DatagramFlow | null = null;
  #meter: Meter | null = null;
  #noted: Disposable | null = null;
  #closed = false;

  constructor(metadata: Metadata, decision: Decision, env: DatagramEnv, owner: BranchOwner) {
    this.decision = decision;
    this.idleMs = metadata.destination.port === DNS_PORT ? Math.min(DNS_IDLE_MS, env.idleMs) : env.idleMs;
    this.names = new ReplyNames(env.budget.limits.destinationsPerSession);
    this.#env = env;
    this.#owner = owner;
    this.#waiting = new DatagramQueue(env.budget);
    this.#entry = env.live.open(metadata);
    this.#entry.decision = decision;
    this.#entry.signal.addEventListener("abort", () => this.close(null));
    env.timers.add(this);
    void this.#open(metadata);
  }

  async #open(metadata: Metadata): Promise<void> {
    const { outbound } = this.decision;
    const { signal } = this.#entry;
    const { log, ledger, reach: guard } = this.#env;
    this.#env.flows.decided(this.decision);
    try {
      // A throw before the promise must come as late as a rejection: the owner does not know this branch yet.
      const reach = guard.of(metadata, this.decision);
      const flow = await Promise.try(() =>
        outbound.associate(dialOf(this.decision), { signal, metadata, reach }),
      );
      if (this.#closed) return await closeFlow(flow, log);
      this.#flow = flow;
      reportDial(this.decision, null);
      this.#noted = this.#env.loops.watch(this.decision, flow);
      this.#meter = ledger.open(metadata, this.decision);
      log.info(() => matched(metadata, this.decision));
      flow.receive((item) => this.#onReply(item));
      flow.closed.then(
        () => this.close(null),
        () => this.close(null),
      );
      for (const item of this.#waiting.take()) this.send(item.payload, item.destination);
    } catch (error) {
      if (this.#flow === null) reportDial(this.decision, error);
      if (this.#closed) return;
      const failure = dialFailed(log, metadata, this.decision, error);
      this.#entry.notDialled(failure);
      this.close(failure);
    }
  }

  /** To the far side. `destination` is what the outbound is asked for. */
  send(payload: Uint8Array, destination: Destination): void {
    if (this.#closed) return;
    this.#env.timers.touch(this);
    if (this.#flow === null || this.#meter === null) return this.#waiting.push({ payload, destination });
    if (!this.#meter.admit("upload", payload.length)) return;
    this.#entry.count("upload", payload.length);
    this.#handOn(this.#flow, payload, destination);
  }

  #onReply({ payload, destination }: Datagram): void {
    if (this.#closed || this.#meter === null) return;
    this.#env.timers.touch(this);
    if (!this.#meter.admit("download", payload.length)) return;
    this.#entry.count("download", payload.length);
    this.#handOn(this.#owner, payload, this.names.nameOf(destination));
  }

  /** A flow that throws although it must not costs only itself. */
  #handOn(to: Pick<DatagramFlow, "send">, payload: Uint8Array, destination: Destination): void {
    try {
      to.send({ payload, destination });
    } catch (error) {
      this.#env.log.error(() => `[UDP] ${this.decision.outbound.name}: send: ${messageOf(error)}`);
      this.close(null);
    }
  }

  expire(): void {
    this.#entry.because("silent");
    this.close(null);
  }

  close(failure: DialError | null): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#waiting.take();
    this.#env.timers.remove(this);
    this.#entry.close("over"); // a dial under way stops
    this.#entry[Symbol.dispose]();
    this.#meter?.[Symbol.dispose]();
    this.#noted?.[Symbol.dispose]();
    this.#owner.branchClosed(this, failure);
    if (this.#flow !== null) void closeFlow(this.#flow, this.#env.log);
  }
}

/** Never rejects: a flow that cannot be closed cannot be repaired here. */
export async function closeFlow(flow: DatagramFlow, log: Log): Promise<void> {
  try {
    await flow[Symbol.asyncDispose]();
  } catch (error) {
    log.debug(() => `[UDP] closing a path: ${messageOf(error)}`);
  }
}
