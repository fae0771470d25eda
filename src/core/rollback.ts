/** A store was older than what had been acknowledged, since then, and the operator has not accepted that. */
export interface Rollback {
  /** By generations of the store, which grow with every commit. */
  readonly seenGeneration: number;
  readonly foundGeneration: number;
  readonly sinceMs: number;
}
