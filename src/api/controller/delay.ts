/** What the delay tests of nodes, groups and provider nodes have in common (controller-api.md §6.3). */
import * as z from "zod";
import type { DelayTest } from "#core/control.ts";
import { ApiError, DialError } from "#core/errors.ts";
import type { Answer, Faults } from "#api/route.ts";
import { queryInt, queryOf, statusRanges } from "#api/shapes.ts";

/** The reference keeps the time-out of a node test in 16 bits, that of a group test in 32. */
export const nodeQuery = delayQuery(32_767);
export const groupQuery = delayQuery(2_147_483_647);

function delayQuery(maximumMs: number) {
  return queryOf({
    url: z.string().default(""),
    timeout: queryInt(-maximumMs - 1, maximumMs),
    expected: statusRanges().prefault(""),
  });
}

const delay = () => z.int().min(1).max(65_535);

export const DELAY: Answer = {
  status: 200,
  description: "`delay` in ms",
  schema: z.object({ delay: delay() }),
};
export const DELAYS: Answer = {
  status: 200,
  description: "Delay in ms by member, successful ones only",
  schema: z.record(z.string(), delay()),
};
export const DELAY_FAULTS: Faults = { 503: "The node does not work", 504: "No answer in time" };

export function delayTest(query: z.output<typeof nodeQuery>, signal: AbortSignal): DelayTest {
  const url = query.url === "" ? null : query.url;
  return { url, timeoutMs: query.timeout, expected: query.expected, signal };
}

/** `{"delay":87}`, or the two failures that the contract knows. */
export async function delayJson(test: Promise<number>): Promise<{ delay: number }> {
  try {
    return { delay: await test };
  } catch (error) {
    if (!(error instanceof DialError)) throw error;
    const timedOut = error.reason === "timeout";
    throw timedOut
      ? new ApiError(504, "Timeout", { cause: error })
      : new ApiError(503, "An error occurred in the delay test", { cause: error });
  }
}
