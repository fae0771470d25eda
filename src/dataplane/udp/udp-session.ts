/** One client socket, many destinations: each destination is decided once, destinations share paths. */
import { randomUUID } from "node:crypto";
import { ABORTED } from "#core/errors.ts";
import type { DialError } from "#core/errors.ts";
import { dialOf, type Decision } from "#core/router.ts";
import type { Datagram, DatagramSession, Destination, Ip, Metadata } from "#core/session.ts";
import type { DatagramWatch } from "#core/sniffer.ts";
import { Branch, closeFlow } from "./udp-flow.ts";
import type { BranchOwner } from "./udp-flow.ts";
import { DatagramQueue, type Occupant } from "./limits.ts";
import { same } from "./reply-names.ts";
import { dialFailed } from "#dataplane/connection-log.ts";
import type { IdleEntry } from "#dataplane/idle-timers.ts";
import type { DatagramEnv } from "./datagram-env.ts";

/** How long datagrams are dropped unseen after a refusal or a failed dial, so that a flood costs one decision. */
const REFUSED_MS = 5_000;

interface Route {
  readonly client: Destination;
  sentTo: Destination;
  branch: Branch | null;
  /** Null once decided. */
  waiting: DatagramQueue | null;
  /** Non-null while its datagrams are looked at, before it is decided. */
  watch: DatagramWatch | null;
  refusedUntilMs: number;
  /** By a rule: the client gets a refusal. */
  rejected: boolean;
}

/** Settles when the session is over: its client's path has closed, or nothing has happened for long. Never rejects. */
export async function serveDatagrams(session: DatagramSession, env: DatagramEnv): Promise<void> {
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const serving = new Demultiplexer(session, env, resolve);
  if (!env.budget.enter(serving, env.timers.exactMs)) {
    env.log.debug(() => `[UDP] ${serving.source}: too many sessions, one more is refused`);
    return closeFlow(session.flow, env.log);
  }
  serving.start();
  await done;
  env.budget.leave(serving);
  await closeFlow(session.flow, env.log);
}

class Demultiplexer implements BranchOwner, IdleEntry, Occupant {
  activeAtMs = 0;
  idleMs: number;
  readonly #session: DatagramSession;
  readonly #env: DatagramEnv;
  readonly #done: () => void;
  readonly #routes = new Map<string, Route>();
  readonly #branches = new Set<Branch>();
  readonly #abort = new AbortController();
  #last: Route | null = null;
  #first = true;

  constructor(session: DatagramSession, env: DatagramEnv, done: () => void) {
    this.#session = session;
    this.#env = env;
    this.#done = done;
    this.idleMs = env.sessionIdleMs;
  }

  get source(): Ip {
    return this.#session.metadata.source.ip;
  }

  get user(): string | null {
    return this.#session.metadata.inbound.user;
  }

  get usedAtMs(): number {
    let lastMs = this.activeAtMs;
    for (const { activeAtMs } of this.#branches) lastMs = Math.max(lastMs, activeAtMs);
    return lastMs;
  }

  start(): void {
    const { flow } = this.#session;
    this.#env.timers.add(this);
    flow.closed.then(
      () => this.expire(),
      () => this.expire(),
    );
    flow.receive((item) => this.#onClient(item));
  }

  /** The end of the session, whatever the reason. */
  expire(): void {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort(ABORTED);
    this.#env.timers.remove(this);
    for (const branch of this.#branches) branch.close(null);
    for (const route of this.#routes.values()) route.waiting?.take();
    this.#routes.clear();
    this.#done();
  }

  send(item: Datagram): void {
    this.#session.flow.send(item);
  }

  branchClosed(branch: Branch, failure: DialError | null): void {
    this.#branches.delete(branch);
    this.#env.budget.releaseBranch();
    this.#last = null;
    for (const [key, route] of this.#routes) {
      if (route.branch !== branch) continue;
      if (failure === null) this.#routes.delete(key);
      else {
        refuse(route);
        if (branch.decision.outbound.rejects === true) this.#reject(route);
      }
    }
    if (this.#branches.size === 0) {
      this.#env.timers.touch(this);
      this.idleMs = this.#env.sessionIdleMs;
    }
  }

  #onClient(item: Datagram): void {
    const { payload, destination } = item;
    if (this.#abort.signal.aborted) return;
    this.#env.timers.touch(this);
    const last = this.#last;
    const route = last !== null && same(last.client, destination) ? last : this.#routeTo(destination);
    this.#last = route;
    if (route.branch !== null) route.branch.send(payload, route.sentTo);
    else if (route.waiting !== null) {
      route.waiting.push(item);
      route.watch?.feed(payload);
    } else if (route.refusedUntilMs <= performance.now()) {
      route.waiting = new DatagramQueue(this.#env.budget);
      route.waiting.push(item);
      route.rejected = false;
      void this.#decide(route, payload);
    } else if (route.rejected) this.#reject(route);
  }

  #reject(route: Route): void {
    route.rejected = true;
    this.#session.flow.refuse?.(route.client);
  }

  #routeTo(client: Destination): Route {
    const key = `${client.host}|${client.ip}|${client.port}`;
    const known = this.#routes.get(key);
    if (known !== undefined) return known;
    if (this.#routes.size >= this.#env.budget.limits.destinationsPerSession) this.#forgetOldest();
    const route: Route = {
      client,
      sentTo: client,
      branch: null,
      waiting: null,
      watch: null,
      refusedUntilMs: 0,
      rejected: false,
    };
    this.#routes.set(key, route);
    return route;
  }

  #forgetOldest(): void {
    const [key, route] = this.#routes.entries().next().value as [string, Route];
    route.waiting?.take();
    this.#routes.delete(key);
  }

  async #decide(route: Route, first: Uint8Array): Promise<void> {
    const { router, sniffer } = this.#env;
    const { signal } = this.#abort;
    const metadata = this.#metadataOf(route.client);
    try {
      const watch = (route.watch = sniffer === null ? null : sniffer.watchDatagrams(metadata, signal));
      watch?.feed(first);
      const sniffed = watch === null ? null : await watch.result;
      route.watch = null;
      const decision = await router.route(metadata, signal, sniffed);
      if (this.#abort.signal.aborted) return;
      this.#env.loops.check(metadata, decision);
      route.sentTo = dialOf(decision);
      route.branch = this.#branchFor(route, decision, metadata);
    } catch (error) {
      if (!this.#abort.signal.aborted) dialFailed(this.#env.log, metadata, null, error);
    }
    const waiting = route.waiting?.take() ?? [];
    route.waiting = null;
    if (route.branch === null) return refuse(route);
    for (const { payload } of waiting) route.branch.send(payload, route.sentTo);
  }

  /** Every path is a row of its own in the live table, and so needs an id of its own. */
  #metadataOf(destination: Destination): Metadata {
    const { metadata } = this.#session;
    if (!this.#first) return { ...metadata, id: randomUUID(), destination, acceptedAtMs: Date.now() };
    this.#first = false;
    return { ...metadata, destination };
  }

  /** Null at a bound: datagrams to this destination are dropped for a while. */
  #branchFor({ client, sentTo }: Route, decision: Decision, metadata: Metadata): Branch | null {
    const { budget } = this.#env;
    const { outbound, rule, entered } = decision;
    for (const branch of this.#branches) {
      if (branch.decision.outbound !== outbound || branch.decision.rule !== rule) continue;
      if (branch.decision.entered !== entered) continue;
      if (!branch.names.accepts(client, sentTo)) continue;
      branch.names.add(client, sentTo);
      return branch;
    }
    if (this.#branches.size >= budget.limits.branchesPerSession || !budget.takeBranch()) return null;
    const branch = new Branch(metadata, decision, this.#env, this);
    branch.names.add(client, sentTo);
    this.#branches.add(branch);
    this.idleMs = Infinity; // the paths have time-outs of their own
    return branch;
  }
}

function refuse(route: Route): void {
  route.branch = null;
  route.refusedUntilMs = performance.now() + REFUSED_MS;
}
