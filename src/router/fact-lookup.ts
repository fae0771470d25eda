/** Looks up what a rule could not do without. */
import { DialError } from "#core/errors.ts";
import type { FactName, Facts } from "#core/rule.ts";
import type { Metadata } from "#core/session.ts";
import type { RouterEnv } from "./rule-router.ts";
import { socketOf } from "./session-facts.ts";

export type LookupEnv = Pick<RouterEnv, "processes" | "resolver" | "neighbours">;

/** `facts` with the wanted one as a value, or null, which counts as known: it is not looked up again. */
export async function discover(
  env: LookupEnv,
  name: FactName,
  facts: Facts,
  metadata: Metadata,
  signal: AbortSignal,
): Promise<Facts> {
  const found = await lookUp(env, name, facts, metadata, signal);
  if (signal.aborted) throw new DialError("aborted", "the session ended while its way was looked for");
  return { ...facts, ...found };
}

async function lookUp(
  { processes, resolver, neighbours }: LookupEnv,
  name: FactName,
  facts: Facts,
  metadata: Metadata,
  signal: AbortSignal,
): Promise<Facts> {
  if (name === "process" || name === "uid") {
    const socket = socketOf(metadata);
    if (socket === null) return { process: null, uid: null };
    if (name === "uid") return { uid: await processes.uid(socket) };
    const process = await processes.process(socket);
    return { process, uid: process?.uid ?? null };
  }
  if (name === "sourceMac") return { sourceMac: neighbours.macOf(metadata.source.ip) };
  if (name === "ip" && typeof facts.host === "string")
    return {
      ip: await resolver.lookup(facts.host, { signal }).then(
        ([first]) => first?.ip ?? null,
        () => null,
      ),
    };
  return { [name]: null };
}
