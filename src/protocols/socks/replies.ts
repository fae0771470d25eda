import { type DialFailure, errnoOf } from "#core/errors.ts";
import { DialError } from "#core/errors.ts";

/** Reply codes (RFC 1928 §6). */
const CODE_BY_REASON: Readonly<Record<DialFailure, number>> = {
  rejected: 2,
  dropped: 2,
  forbidden: 2,
  resolve: 4,
  unreachable: 3,
  refused: 5,
  timeout: 6,
  aborted: 1,
  unsupported: 1,
  failed: 1,
};

export const GENERAL_FAILURE = 1;
export const COMMAND_UNSUPPORTED = 7;
export const ADDRESS_TYPE_UNSUPPORTED = 8;

/** Host unreachable (4) where the host is at fault, network unreachable (3) where the way to it is. */
export function codeOf(failure: Error): number {
  if (!(failure instanceof DialError)) return GENERAL_FAILURE;
  const { cause } = failure;
  const errno = cause instanceof Error ? errnoOf(cause) : undefined;
  if (failure.reason === "unreachable" && errno?.startsWith("EHOST") === true) return 4;
  return CODE_BY_REASON[failure.reason];
}

interface Meaning {
  readonly reason: DialFailure;
  readonly text: string;
}

const MEANINGS: Readonly<Record<number, Meaning>> = {
  1: { reason: "failed", text: "general failure" },
  2: { reason: "failed", text: "not allowed by the proxy's rules" },
  3: { reason: "unreachable", text: "network unreachable" },
  4: { reason: "unreachable", text: "host unreachable" },
  5: { reason: "refused", text: "connection refused" },
  6: { reason: "timeout", text: "timed out" },
  7: { reason: "failed", text: "command not supported" },
  8: { reason: "failed", text: "address type not supported" },
};

/** The `DialError` that a proxy's refusal stands for. */
export function errorOf(code: number, context: string): DialError {
  const { reason, text } = MEANINGS[code] ?? { reason: "failed", text: `unknown reply code ${code}` };
  return new DialError(reason, `${context}: the proxy answered: ${text}`);
}

/** REJECT-DROP: the client gets no reply at all. */
export function isDropped(failure: Error): boolean {
  return failure instanceof DialError && failure.reason === "dropped";
}
