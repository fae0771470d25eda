export interface PlotData {
  /** Parallel lists, ascending: Unix seconds, amounts. */
  readonly times: readonly number[];
  readonly down: readonly number[];
  readonly up: readonly number[];
}
