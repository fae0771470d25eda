/** One line for each connection, in the shapes that dashboards parse. */
import { asDialError } from "#core/errors.ts";
import type { DialError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Decision } from "#core/router.ts";
import { destinationText, endpointText } from "#core/session.ts";
import type { Metadata } from "#core/session.ts";

/** The destination that was decided on: a fake address is not for people to see. */
function ends({ source, destination }: Metadata, decision: Decision | null): string {
  return `${endpointText(source)} --> ${destinationText(decision?.destination ?? destination)}`;
}

function tag({ network }: Metadata): string {
  return network === "tcp" ? "[TCP]" : "[UDP]";
}

/** `Group[Leaf]`, or the one name there is. */
function using(chain: readonly string[]): string {
  const [outermost = "DIRECT"] = chain;
  return chain.length > 1 ? `${outermost}[${chain.at(-1)}]` : outermost;
}

/** `[TCP] src --> dst match DomainSuffix(example.com) using Auto[Node 1]`; without a rule only what is used. */
export function matched(metadata: Metadata, decision: Decision): string {
  const { rule, chain, unruled } = decision;
  const line = `${tag(metadata)} ${ends(metadata, decision)}`;
  if (rule === null && !unruled) return `${line} doesn't match any rule using ${using(chain)}`;
  if (rule === null) return `${line} using ${using(chain)}`;
  const payload = rule.payload === "" ? "" : `(${rule.payload})`;
  return `${line} match ${rule.apiType}${payload} using ${using(chain)}`;
}

/** `[TCP] src --> dst refused`. */
export function refused(metadata: Metadata): string {
  return `${tag(metadata)} ${ends(metadata, null)} refused`;
}

/** `[TCP] dial Auto (match DomainSuffix/example.com) src --> dst error: reason`. */
function failed(metadata: Metadata, decision: Decision | null, error: DialError): string {
  if (decision === null) return `${tag(metadata)} ${ends(metadata, null)} error: ${error.message}`;
  const { rule, chain } = decision;
  const match = rule === null ? "" : ` (match ${rule.apiType}/${rule.payload})`;
  return `${tag(metadata)} dial ${chain[0] ?? "DIRECT"}${match} ${ends(metadata, decision)} error: ${error.message}`;
}

/**
 * Logs how a dial failed and returns the reason. A rejection is what the rule asked for, and a client that hung up or
 * was closed is no fault: neither is a warning.
 */
export function dialFailed(
  log: Log,
  metadata: Metadata,
  decision: Decision | null,
  error: unknown,
): DialError {
  const known = asDialError(error, "dial");
  if (decision?.outbound.rejects === true) log.info(() => matched(metadata, decision));
  else if (known.reason === "aborted") log.debug(() => failed(metadata, decision, known));
  else log.warning(() => failed(metadata, decision, known));
  return known;
}
