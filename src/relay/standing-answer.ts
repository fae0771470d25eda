/** What is known of one client's conversation serves others that ask for the same, without a look at the rules. */
import { randomUUID } from "node:crypto";
import type { HeldClient, StandingAnswer } from "#core/held.ts";
import { reportDial, type Decision } from "#core/router.ts";
import type { Endpoint, Ip, Metadata } from "#core/session.ts";
import type { ServeEnv } from "./serve.ts";
import { matched } from "./session-log.ts";

/** What was found out for one client. */
export interface Answered {
  readonly decision: Decision;
  readonly ip: Ip;
}

/** Goes on with a client that is connected. */
type Join = (client: HeldClient, metadata: Metadata, by: Answered, env: ServeEnv) => void;

/** Null: each is decided by itself. `metadata` is that of the one for whom it was found out. */
export function standingAnswer(
  metadata: Metadata,
  answered: Answered,
  env: ServeEnv,
  join: Join,
): StandingAnswer | null {
  const { decision } = answered;
  // What the loop guard notes it notes of each.
  const again = env.loops.notes ? null : (env.router.repeats?.(metadata, decision) ?? null);
  return again === null ? null : new Standing(metadata, answered, again, env, join);
}

class Standing implements StandingAnswer {
  readonly #metadata: Metadata;
  /** Of all who come by it: without what only one of them has. */
  readonly #answered: Answered;
  readonly #again: () => void;
  readonly #env: ServeEnv;
  readonly #join: Join;

  constructor(metadata: Metadata, answered: Answered, again: () => void, env: ServeEnv, join: Join) {
    this.#metadata = metadata;
    const { sourcePort: _, ...facts } = answered.decision.facts;
    this.#answered = { ...answered, decision: { ...answered.decision, facts } };
    this.#again = again;
    this.#env = env;
    this.#join = join;
    env.enter(); // its listener's generation stays until nobody comes by it
  }

  passed(source: Endpoint, uploadBytes: number, downloadBytes: number): void {
    const { live, log } = this.#env;
    const { decision } = this.#answered;
    this.#again();
    reportDial(decision, null);
    log.info(() => matched({ ...this.#metadata, source }, decision));
    live.count("upload", uploadBytes);
    live.count("download", downloadBytes);
  }

  joined(client: HeldClient, startedAtMs: number): void {
    this.#again();
    const { source } = client;
    const metadata = { ...this.#metadata, id: randomUUID(), source, acceptedAtMs: startedAtMs };
    this.#join(client, metadata, this.#answered, this.#env);
  }

  over(): void {
    this.#env.leave();
  }
}
