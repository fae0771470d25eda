/** The answer for one connection serves others with the same request for a second, without a look at the rules. */
import { randomUUID } from "node:crypto";
import type { WorkerConnection, CachedRoute } from "#core/accepted.ts";
import { reportDial, type Decision } from "#core/router.ts";
import type { Endpoint, Ip, Metadata } from "#core/session.ts";
import type { SessionEnv } from "./session-env.ts";
import { matched } from "./connection-log.ts";

/** How a connection was dialled. */
export interface RoutedAnswer {
  readonly decision: Decision;
  readonly ip: Ip;
}

/** Serves a connection that a worker has dialled by a cached route. */
type Join = (client: WorkerConnection, metadata: Metadata, by: RoutedAnswer, env: SessionEnv) => void;

/** Null: each connection is decided by itself. `metadata` is that of the connection for which it was decided. */
export function cachedRoute(
  metadata: Metadata,
  answered: RoutedAnswer,
  env: SessionEnv,
  join: Join,
): CachedRoute | null {
  const { decision } = answered;
  // The loop detector notes every single dial.
  const again = env.loops.notes ? null : (env.router.repeatCounter?.(metadata, decision) ?? null);
  return again === null ? null : new CachedRouteEntry(metadata, answered, again, env, join);
}

class CachedRouteEntry implements CachedRoute {
  readonly #metadata: Metadata;
  /** Without what only one connection has. */
  readonly #answered: RoutedAnswer;
  readonly #again: () => void;
  readonly #env: SessionEnv;
  readonly #join: Join;

  constructor(metadata: Metadata, answered: RoutedAnswer, again: () => void, env: SessionEnv, join: Join) {
    this.#metadata = metadata;
    const { sourcePort: _, ...facts } = answered.decision.facts;
    this.#answered = { ...answered, decision: { ...answered.decision, facts } };
    this.#again = again;
    this.#env = env;
    this.#join = join;
    env.enter(); // the listener's generation is kept until the route is released
  }

  served(source: Endpoint, uploadBytes: number, downloadBytes: number): void {
    const { live, log } = this.#env;
    const { decision } = this.#answered;
    this.#again();
    reportDial(decision, null);
    log.info(() => matched({ ...this.#metadata, source }, decision));
    live.count("upload", uploadBytes);
    live.count("download", downloadBytes);
  }

  joined(client: WorkerConnection, startedAtMs: number): void {
    this.#again();
    const { source } = client;
    const metadata = { ...this.#metadata, id: randomUUID(), source, acceptedAtMs: startedAtMs };
    this.#join(client, metadata, this.#answered, this.#env);
  }

  released(): void {
    this.#env.leave();
  }
}
