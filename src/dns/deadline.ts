/**
 * Runs `work` under a signal that aborts with `life`, and with what `late` makes when `timeoutMs` are over. Nothing is left
 * of either once `work` has settled.
 */
export async function withDeadline<T>(
  life: AbortSignal,
  timeoutMs: number,
  late: () => Error,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const end = () => stop.abort(life.reason);
  const timer = setTimeout(() => stop.abort(late()), timeoutMs);
  life.addEventListener("abort", end, { once: true });
  if (life.aborted) end();
  try {
    return await work(stop.signal);
  } finally {
    clearTimeout(timer);
    life.removeEventListener("abort", end);
  }
}
