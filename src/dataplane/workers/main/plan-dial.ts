/** A dial by the plan of the main thread, as shared memory has it, and what it came to. */
import type { DialPlan } from "#core/dial-plan.ts";
import { atNode, type DialError } from "#core/errors.ts";
import { connectError, lateError } from "#net/dial/dial.ts";
import { DIAL_TIMED_OUT, UNDERLAY_FAILED, type Dial } from "#dataplane/workers/shared/request-memory.ts";
import type { Sockaddrs } from "#dataplane/workers/shared/sockaddrs.ts";
import { wholeSeconds } from "#dataplane/workers/shared/whole-seconds.ts";

const NO_BYTES = Buffer.alloc(0);

/** To be written at once: its address is lent. */
export function planDial(plan: DialPlan, replyBytes: Uint8Array, sockaddrs: Sockaddrs): Dial {
  const { probes, routingMark, interfaceName, timeoutMs } = plan;
  return {
    address: sockaddrs.encode(plan),
    mark: routingMark,
    timeoutMs,
    idleSeconds: probes === null ? 0 : wholeSeconds(probes.idleMs),
    intervalSeconds: probes === null ? 0 : wholeSeconds(probes.intervalMs),
    device: interfaceName === "" ? NO_BYTES : Buffer.from(interfaceName),
    replyBytes,
  };
}

/** What is wrong with it, by the errno that the worker reports; null: that is to be found by dialling from the event loop. */
export function dialFailure({ ip, port, timeoutMs, isOfNode }: DialPlan, errno: number): DialError | null {
  if (errno === UNDERLAY_FAILED) return null;
  const to = { ip, port };
  const error = errno === DIAL_TIMED_OUT ? lateError(to, timeoutMs) : connectError(to, errno);
  return isOfNode === true ? atNode(error) : error;
}
