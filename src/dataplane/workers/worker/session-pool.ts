import { performance } from "node:perf_hooks";
import { ConfigError } from "#core/errors.ts";
import type { SessionRecipe } from "#core/wire-recipe.ts";
import { type PaddingScheme, parseScheme } from "#protocols/begin-wire.ts";
import { addsLittle } from "#protocols/shared/padded-write.ts";
import { NodeSession, type SessionOrigin } from "#dataplane/workers/wire/node-session.ts";
import type { Wire } from "#dataplane/workers/wire/wire.ts";
import type { IdleSession } from "./idle-session.ts";

/** What one thread has of the sessions of a node. The number of streams at one time bounds it; time-outs shrink it. */
export class SessionPool {
  readonly recipe: SessionRecipe;
  readonly #gone: Int32Array;
  readonly #idle = new Set<IdleSession>();
  #scheme: PaddingScheme;
  #sequence = 0;
  #checkAtMs = 0;

  constructor(recipe: SessionRecipe) {
    this.recipe = recipe;
    this.#gone = new Int32Array(recipe.gone);
    this.#scheme = parseScheme(Buffer.from(recipe.scheme));
  }

  /** Its node has gone. */
  get isGone(): boolean {
    return Atomics.load(this.#gone, 0) !== 0;
  }

  get size(): number {
    return this.#idle.size;
  }

  newSession(inner: Wire, origin: SessionOrigin): NodeSession {
    const { recipe } = this;
    const onScheme = (raw: Buffer): void => this.#takeScheme(raw);
    return new NodeSession(inner, origin, {
      recipe,
      scheme: this.#scheme,
      sequence: this.#sequence++,
      onScheme,
    });
  }

  #takeScheme(raw: Buffer): void {
    try {
      const scheme = parseScheme(raw);
      if (addsLittle(scheme)) this.#scheme = scheme; // else a write would be more than a wire holds
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error; // a scheme that cannot be read is passed over as a whole
    }
  }

  put(one: IdleSession): void {
    if (this.#idle.size === 0) this.#checkAtMs = performance.now() + this.recipe.checkIntervalMs;
    this.#idle.add(one);
  }

  /** The youngest; null where there is none. */
  take(): IdleSession | null {
    let youngest: IdleSession | null = null;
    for (const one of this.#idle)
      if (youngest === null || one.session.sequence > youngest.session.sequence) youngest = one;
    if (youngest !== null) this.#idle.delete(youngest);
    return youngest;
  }

  remove(one: IdleSession): void {
    this.#idle.delete(one);
  }

  /** Closes what has been idle too long, or all where the node has gone. */
  check(nowMs: number, close: (one: IdleSession) => void): void {
    const { isGone } = this;
    if (!isGone && nowMs < this.#checkAtMs) return;
    this.#checkAtMs = nowMs + this.recipe.checkIntervalMs;
    const youngestFirst = [...this.#idle].sort((a, b) => b.session.sequence - a.session.sequence);
    for (const [rank, one] of youngestFirst.entries()) {
      if (!isGone && nowMs - one.sinceMs < this.recipe.timeoutMs) continue;
      if (!isGone && rank < this.recipe.minIdle) one.sinceMs = nowMs;
      else {
        this.#idle.delete(one);
        close(one);
      }
    }
  }
}
