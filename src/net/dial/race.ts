/** Several addresses, one winner (RFC 8305 §5: staggered starts, a failure starts the next at once). */
import { ABORTED, DialError } from "#core/errors.ts";

/** Must honour its signal: a loser is aborted, and a connection that it opens nevertheless is passed to `discard`. */
export type Attempt<From, Made> = (from: From, signal: AbortSignal) => Promise<Made>;

export interface RaceOptions {
  readonly signal: AbortSignal;
  /** Between two starts while none has failed or won; 0: all at once. */
  readonly staggerMs: number;
}

/** The first that works. Where none does, the first failure is thrown: it belongs to the best candidate. */
export async function race<From, Made>(
  candidates: readonly From[],
  attempt: Attempt<From, Made>,
  discard: (loser: Made) => void,
  { signal, staggerMs }: RaceOptions,
): Promise<Made> {
  if (candidates.length === 1) return attempt(candidates[0] as From, signal);
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(ABORTED);
  if (signal.aborted) stop.abort(ABORTED);
  signal.addEventListener("abort", onAbort);
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<Made>((resolve, reject) => {
      let next = 0;
      let running = 0;
      let won = false;
      let first: unknown = null;
      const start = (): void => {
        clearTimeout(timer);
        const candidate = candidates[next++] as From;
        running++;
        attempt(candidate, stop.signal).then(
          (made) => {
            if (won) return discard(made);
            won = true;
            resolve(made);
          },
          (error: unknown) => {
            first ??= error;
            running--;
            if (won) return;
            if (next < candidates.length && !stop.signal.aborted) start();
            else if (running === 0) reject(first);
          },
        );
        if (next >= candidates.length || won) return;
        if (staggerMs === 0) start();
        else timer = setTimeout(start, staggerMs);
      };
      if (candidates.length === 0) reject(new DialError("resolve", "there is no address to dial"));
      else start();
    });
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
    stop.abort(ABORTED);
  }
}
