/** One question to all servers of a list at once; the first acceptable answer counts (dns.md §7.2). */
import { ABORTED, DialError, messageOf, ProtocolError } from "#core/errors.ts";
import { openPacket, type Packet } from "./packet.ts";
import { RCODE } from "./types.ts";
import type { Upstream } from "./upstream/upstream.ts";

export interface Won {
  readonly packet: Packet;
  /** False for rcode:// answers: they are not cached. */
  readonly keep: boolean;
}

/** A server answered, but with a code that says it cannot help. */
class RefusedAnswer extends ProtocolError {}

/**
 * Throws `DialError` "all DNS requests failed" with the first failure in its text and an `AggregateError` of all as its
 * cause. Losers are aborted.
 */
export async function raceUpstreams(
  upstreams: readonly Upstream[],
  query: Uint8Array,
  signal: AbortSignal,
): Promise<Won> {
  const fixed = upstreams.find((upstream) => upstream.fixed);
  if (fixed !== undefined) return { packet: openPacket(await fixed.exchange(query, signal)), keep: false };
  const losers = new AbortController();
  const stop = () => losers.abort(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    const packet = await Promise.any(upstreams.map((upstream) => ask(upstream, query, losers.signal)));
    return { packet, keep: true };
  } catch (error) {
    const first = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
    throw new DialError("resolve", `all DNS requests failed: ${messageOf(first)}`, { cause: error });
  } finally {
    signal.removeEventListener("abort", stop);
    losers.abort(ABORTED); // one for all: each question would make an error with its stack that is never read
  }
}

async function ask(upstream: Upstream, query: Uint8Array, signal: AbortSignal): Promise<Packet> {
  const packet = openPacket(await upstream.exchange(query, signal));
  const { rcode } = packet;
  if (rcode === RCODE.SERVFAIL || rcode === RCODE.REFUSED)
    throw new RefusedAnswer(`${upstream.text}: ${rcode === RCODE.SERVFAIL ? "SERVFAIL" : "REFUSED"}`);
  return packet;
}

/** Did every server answer, those of a list in a list, too, only that none could help? Then asking again is of no use. */
export function allRefused(error: unknown): boolean {
  if (error instanceof RefusedAnswer) return true;
  const cause = error instanceof DialError ? error.cause : null;
  return cause instanceof AggregateError && cause.errors.every(allRefused);
}
