/** Two ways to one server: the one that is open first is kept to as long as it works. */
import { ABORTED, DialError, messageOf } from "#core/errors.ts";
import type { AskingClient, DialClient } from "./kept-client.ts";

/** How long the way that was faster before goes alone. */
const HEAD_START_MS = 1000;

/** At first both are dialled at once; later the winner, and the other where the winner has not opened in time. */
export function fasterOf(one: DialClient, other: DialClient, headStartMs = HEAD_START_MS): DialClient {
  let winner: DialClient | null = null;
  return async (life) => {
    const [first, second] = winner === other ? [other, one] : [one, other];
    const found = await race(first, second, winner === null ? 0 : headStartMs, life);
    winner = found.by;
    return found.client;
  };
}

interface Found {
  readonly client: AskingClient;
  readonly by: DialClient;
}

/** Throws `DialError` with both reasons where neither way opens. */
async function race(
  first: DialClient,
  second: DialClient,
  headStartMs: number,
  life: AbortSignal,
): Promise<Found> {
  const losers = new Set([first, second].map((by) => ({ by, stop: new AbortController() })));
  const began = Promise.withResolvers<void>();
  const timer = setTimeout(began.resolve, headStartMs);
  const attempts = Array.from(losers, async (one, index) => {
    if (index > 0) await began.promise;
    try {
      one.stop.signal.throwIfAborted();
      const client = await one.by(AbortSignal.any([life, one.stop.signal]));
      if (one.stop.signal.aborted) client.close(); // it opened all the same
      one.stop.signal.throwIfAborted();
      losers.delete(one);
      for (const { stop } of losers) stop.abort(ABORTED);
      return { client, by: one.by };
    } catch (error) {
      began.resolve();
      throw error;
    }
  });
  try {
    return await Promise.any(attempts);
  } catch (error) {
    const reasons = error instanceof AggregateError ? error.errors.map(messageOf) : [messageOf(error)];
    throw new DialError("failed", reasons.join("; "), { cause: error });
  } finally {
    clearTimeout(timer);
    began.resolve();
  }
}
