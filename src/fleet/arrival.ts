/** The users of a listener that comes to be managed by a node: the fleet's, or as they were last known here. */
import { type Client, DatabaseError } from "pg";
import { ConfigError, messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { NO_TRAFFIC } from "#users/counters.ts";
import { seedBook } from "#users/seed.ts";
import type { ManagedListener } from "#users/settings.ts";
import { UNKNOWN_ID, type UserBook } from "#users/user-book.ts";
import type { UserRegistry } from "#users/user-registry.ts";
import { FleetError, reasonOf } from "./errors.ts";
import { fetchListener, nextBook, otherListener } from "./follower.ts";
import { publishListener } from "./listeners.ts";
import type { TokenSeal } from "./seal.ts";
import { within } from "./within.ts";

export interface ArrivalEnv {
  readonly node: string;
  readonly seal: TokenSeal;
  readonly registry: UserRegistry;
  readonly log: Log;
  readonly nowMs: () => number;
}

/** Waits `withinMs` at most. Rejects with `ConfigError` where the fleet has another listener of this name. */
export async function bookFromFleet(
  run: <T>(work: (client: Client) => Promise<T>) => Promise<T>,
  listener: ManagedListener,
  known: UserBook | null,
  { env, withinMs }: { readonly env: ArrivalEnv; readonly withinMs: number },
): Promise<UserBook> {
  try {
    const work = run((client) => fetchBook(client, listener, known, env));
    work.catch(() => {}); // it may end behind the time
    return (await within(withinMs, work)) ?? bookWithout(listener, known, env.log);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    env.log.error(`fleet: listener ${listener.name}: ${faultOf(error, listener.name)}`);
    return known ?? unknownBook(listener);
  }
}

/**
 * Of a listener that came while the database was away, and that no state file has: the fleet gets its first users, if it has none
 * of this name. Rejects as a lost connection does.
 */
export async function publishMissing(
  client: Client,
  listener: ManagedListener,
  env: ArrivalEnv,
): Promise<void> {
  try {
    await fetchBook(client, listener, null, env);
  } catch (error) {
    const isOfListener = [DatabaseError, ConfigError, FleetError].some((kind) => error instanceof kind);
    if (!isOfListener) throw error;
    env.log.warning(`fleet: listener ${listener.name}: ${faultOf(error, listener.name)}`);
  }
}

/** As the state file has it, or a book without users that stands for one. */
export function bookWithout(listener: ManagedListener, known: UserBook | null, log: Log): UserBook {
  const text =
    known === null
      ? "is not there yet, and its users are not known here: no user is let in until it is"
      : `is not there yet, its ${known.users.size} users are served as they were last known`;
  log.warning(`fleet: listener ${listener.name}: the database ${text}`);
  return known ?? unknownBook(listener);
}

async function fetchBook(
  client: Client,
  listener: ManagedListener,
  known: UserBook | null,
  env: ArrivalEnv,
): Promise<UserBook> {
  const base = known ?? unknownBook(listener);
  const found = await fetchListener(client, base, env.seal);
  if (found === null) {
    const book = known ?? seedBook(listener, Math.trunc(env.nowMs()));
    const users = [...book.users.keys()];
    const traffic = new Map(users.map((id) => [id, env.registry.resting.get(id) ?? NO_TRAFFIC]));
    if (!(await publishListener(client, book, { node: env.node, seal: env.seal, traffic })))
      return fetchBook(client, listener, known, env); // another node was quicker
    env.log.info(`fleet: listener ${listener.name} is new there, with ${users.length} users`);
    return book;
  }
  if (known !== null && known.id !== found.id)
    throw new ConfigError(`svc.fleet: ${otherListener(listener.name)}`);
  if (found.protocol !== listener.protocol)
    throw new ConfigError(
      `svc.fleet: the fleet has listener ${listener.name} as ${found.protocol}, the configuration as ${listener.protocol}`,
    );
  return known?.revision === found.revision
    ? known
    : nextBook(base, found, { support: listener.support, log: env.log });
}

function faultOf(error: unknown, name: string): string {
  if (error instanceof ConfigError) return error.message;
  if (error instanceof DatabaseError && error.code === "42501")
    return `the fleet does not have it for this login: weir fleet allow LOGIN ${name}; with -writes the node can make it`;
  return error instanceof DatabaseError ? messageOf(error) : reasonOf(error);
}

/** Of users that are not known here; it is never written. */
function unknownBook({ name, protocol }: ManagedListener): UserBook {
  return { id: UNKNOWN_ID, listener: name, protocol, revision: 1, appliedRevision: 0, users: new Map() };
}
