/** A running node of a fleet: joins its parts, and is what the manager of users and the API see of them. */
import { type Client, DatabaseError } from "pg";
import { ApiError, ConfigError, messageOf } from "#core/errors.ts";
import type { FleetAdmin, FleetView } from "#core/fleet.ts";
import type { Changes, Shared } from "#users/changes.ts";
import { NO_TRAFFIC } from "#users/counters.ts";
import type { FleetContext, FleetLink } from "#users/fleet-link.ts";
import { seedBook } from "#users/seed.ts";
import type { ManagedListener } from "#users/settings.ts";
import { UNKNOWN_ID, type UserBook } from "#users/user-book.ts";
import { VERSION } from "#version.ts";
import { type FleetError, reasonOf } from "./errors.ts";
import { FleetConnection } from "./fleet-connection.ts";
import { answerFor, away, FleetRepository } from "./fleet-repository.ts";
import { fetchListener, Follower, nextBook, otherListener } from "./follower.ts";
import { type NodeIdentity, raiseEpoch } from "./identity.ts";
import { publishListener } from "./listeners.ts";
import { Membership } from "./membership.ts";
import { fetchNodes, type FleetNode } from "./nodes.ts";
import { TokenSeal } from "./seal.ts";
import { Snapshot } from "./snapshot.ts";
import { databaseOptions } from "./source.ts";

/** What a start waits for the database. */
const START_MS = 2_000;
/** What leaving waits for it. */
const LEAVE_MS = 1_500;
const BEAT_MS = 3_000;
/** How soon others are told what is in force here. */
const SOON_MS = 200;
/** Older than this, what views show of other nodes is asked for anew. */
const FRESH_MS = 1_000;
/** What a view waits for that. */
const MOST_WAIT_MS = 1_000;
/** A change holds up others of its listener. */
const STATEMENT_MS = 3_000;

/** Settles when the state file has this process's epoch; the database is connected to afterwards. */
export async function openFleet(context: FleetContext): Promise<FleetLink> {
  databaseOptions(context.fleet, process.env); // throws where it can never be had
  return new FleetMember(context, await raiseEpoch(context.opened));
}

class FleetMember implements FleetLink, FleetAdmin {
  readonly repository: FleetRepository;
  readonly #context: FleetContext;
  readonly #identity: NodeIdentity;
  readonly #seal: TokenSeal;
  readonly #connection: FleetConnection;
  readonly #membership: Membership;
  readonly #snapshot: Snapshot;
  readonly #startedMs: number;
  #refused: FleetError | null = null;
  #follower: Follower | null = null;
  #nodes: readonly FleetNode[] = [];
  #nodesAtMs = -Infinity;
  #beatAtMs = -Infinity;
  /** The revisions in force here, as they were reported last. */
  #reported = "";

  constructor(context: FleetContext, identity: NodeIdentity) {
    const { env, settings, fleet, opened, registry, local } = context;
    this.#context = context;
    this.#identity = identity;
    this.#startedMs = env.monotonicMs();
    this.#seal = new TokenSeal(settings.secret);
    this.#snapshot = new Snapshot(opened.store, registry, env.log);
    const options = () => ({ ...databaseOptions(fleet, process.env), statementTimeoutMs: STATEMENT_MS });
    this.#connection = new FleetConnection(options);
    this.repository = new FleetRepository({
      local,
      snapshot: this.#snapshot,
      seal: this.#seal,
      connection: this.#connection,
      follower: () => this.#demandFollower(),
      awayBecause: () => (this.#membership.state.isUp ? null : this.#membership.state.reason),
      nowMs: env.nowMs,
      node: fleet.node,
      onChanged: () => this.#membership.wake(),
    });
    this.#membership = new Membership({
      options: () => databaseOptions(fleet, process.env),
      identity,
      seal: this.#seal,
      about: { name: fleet.node, address: fleet.address, labels: fleet.labels, version: VERSION },
      log: env.log,
      nowMs: env.nowMs,
      round: (client) => this.#round(client),
      onRefused: (error) => {
        this.#refused = error;
        if (registry.listeners.size > 0) env.onFailure(error); // else `bookOf` says it
      },
    });
  }

  get admin(): FleetAdmin {
    return this;
  }

  follow(shared: Shared, changes: Changes): void {
    const { local } = this.#context;
    const onApplied = (): void => this.#membership.wake();
    this.#follower = new Follower({
      shared,
      changes,
      local,
      snapshot: this.#snapshot,
      seal: this.#seal,
      onApplied,
    });
  }

  distrust(): void {
    this.#snapshot.distrust();
  }

  async bookOf(listener: ManagedListener, known: UserBook | null): Promise<UserBook> {
    const { env } = this.#context;
    const fallback = known ?? unknownBook(listener);
    const leftMs = Math.max(0, START_MS - (env.monotonicMs() - this.#startedMs));
    await within(leftMs, this.#membership.opened);
    if (this.#refused !== null) throw new ConfigError(`svc.fleet: ${this.#refused.message}`);
    if (!this.#membership.state.isUp) return this.#without(listener, known, fallback);
    try {
      const work = this.#connection.run((client) => this.#fetchBook(client, listener, known));
      work.catch(() => {}); // it may end behind the time
      return (await within(Math.max(leftMs, SOON_MS * 5), work)) ?? this.#without(listener, known, fallback);
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      env.log.error(`fleet: listener ${listener.name}: ${listenerFault(error, listener.name)}`);
      return fallback;
    }
  }

  async leave(): Promise<void> {
    await within(LEAVE_MS, this.#membership.leave());
    this.#connection[Symbol.dispose]();
  }

  // --- what the API sees ---

  async freshen(): Promise<void> {
    if (!this.#membership.state.isUp || this.#context.env.monotonicMs() - this.#nodesAtMs < FRESH_MS) return;
    await within(
      MOST_WAIT_MS,
      this.#fetchNodes().catch(() => {}),
    );
  }

  async view(): Promise<FleetView> {
    if (this.#membership.state.isUp)
      await within(
        MOST_WAIT_MS,
        this.#fetchNodes().catch(() => {}),
      );
    return { self: this.#context.fleet.node, database: this.#membership.state, nodes: this.#nodes };
  }

  async drain(node: string, isDraining: boolean): Promise<void> {
    const [row] = await this.#command<{ done: boolean }>("SELECT weir.drain($1, $2) AS done", [
      node,
      isDraining,
    ]);
    if (row?.done !== true) throw noNode(node);
  }

  async forget(node: string): Promise<void> {
    const [row] = await this.#command<{ outcome: string }>("SELECT weir.forget($1) AS outcome", [node]);
    if (row?.outcome === "live")
      throw new ApiError(409, `node ${node} is not lost: it was seen in the last minute; stop it first`);
    if (row?.outcome !== "done") throw noNode(node);
  }

  async #command<Row extends object>(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    const { isUp, reason } = this.#membership.state;
    if (!isUp) throw away(`${reason}; nothing was changed`);
    try {
      const rows = await this.#connection.query<Row>(text, values);
      await this.#fetchNodes();
      return rows;
    } catch (error) {
      throw answerFor(error, "it is done soon, or was not");
    }
  }

  // --- between the database and the users here ---

  /** Of the connection on which the node lives. Rejects as the database does. */
  async #round(client: Client): Promise<void> {
    await this.#follower?.followAll((work) => work(client));
    await this.#beat(client);
  }

  async #beat(client: Client): Promise<void> {
    const { env, registry } = this.#context;
    const nowMs = env.monotonicMs();
    const applied = JSON.stringify(this.#applied());
    const isDue = nowMs - this.#beatAtMs >= (applied === this.#reported ? BEAT_MS : SOON_MS);
    if (!isDue) {
      if (applied !== this.#reported) setTimeout(() => this.#membership.wake(), SOON_MS).unref();
      return;
    }
    const { nodeId, instance } = this.#identity;
    const stats = { connections: [...env.live].length };
    const { rows } = await client.query<{ is_draining: boolean | null }>(
      "SELECT weir.beat($1, $2, $3, $4, $5) AS is_draining",
      [nodeId, instance, applied, null, stats],
    );
    const isDraining = rows[0]?.is_draining ?? null;
    if (isDraining === null) throw new Error("this node was taken out of the fleet, it enrolls again");
    registry.isDraining = isDraining;
    this.#beatAtMs = nowMs;
    this.#reported = applied;
    this.#takeNodes(await fetchNodes(client, nodeId));
  }

  #applied(): Readonly<Record<string, number>> {
    const { registry } = this.#context;
    const books = [...registry.listeners.keys()].flatMap((tag) => registry.books.get(tag) ?? []);
    return Object.fromEntries(
      books.flatMap(({ id, listener, appliedRevision }) =>
        id === UNKNOWN_ID ? [] : [[listener, appliedRevision]],
      ),
    );
  }

  async #fetchNodes(): Promise<void> {
    this.#takeNodes(await this.#connection.run((client) => fetchNodes(client, this.#identity.nodeId)));
  }

  #takeNodes(nodes: readonly FleetNode[]): void {
    const { env, registry } = this.#context;
    this.#nodes = nodes;
    this.#nodesAtMs = env.monotonicMs();
    registry.appliedElsewhere = nodes.flatMap(({ name, applied, state, isSelf }) =>
      isSelf || (state !== "live" && state !== "draining") ? [] : [{ node: name, applied }],
    );
  }

  async #fetchBook(client: Client, listener: ManagedListener, known: UserBook | null): Promise<UserBook> {
    const { env, registry, fleet } = this.#context;
    const base = known ?? unknownBook(listener);
    const found = await fetchListener(client, base, this.#seal);
    if (found === null) {
      const book = known ?? seedBook(listener, Math.trunc(env.nowMs()));
      const users = [...book.users.keys()];
      const traffic = new Map(users.map((id) => [id, registry.resting.get(id) ?? NO_TRAFFIC]));
      const publishing = { node: fleet.node, seal: this.#seal, traffic };
      if (await publishListener(client, book, publishing)) {
        env.log.info(`fleet: listener ${listener.name} is new there, with ${users.length} users`);
        return book;
      }
      return this.#fetchBook(client, listener, known); // another node was quicker
    }
    if (known !== null && known.id !== found.id)
      throw new ConfigError(`svc.fleet: ${otherListener(listener.name)}`);
    if (found.protocol !== listener.protocol)
      throw new ConfigError(
        `svc.fleet: the fleet has listener ${listener.name} as ${found.protocol}, the configuration as ${listener.protocol}`,
      );
    return known?.revision === found.revision ? known : nextBook(base, found);
  }

  #without(listener: ManagedListener, known: UserBook | null, fallback: UserBook): UserBook {
    const { name } = listener;
    const text =
      known === null
        ? "is not there yet, and its users are not known here: no user is let in until it is"
        : `is not there yet, its ${known.users.size} users are served as they were last known`;
    this.#context.env.log.warning(`fleet: listener ${name}: the database ${text}`);
    return fallback;
  }

  #demandFollower(): Follower {
    if (this.#follower === null) throw new Error("the fleet is not followed yet");
    return this.#follower;
  }
}

function noNode(node: string): ApiError {
  return new ApiError(404, `the fleet has no node ${node}`);
}

function listenerFault(error: unknown, name: string): string {
  if (error instanceof DatabaseError && error.code === "42501")
    return `the fleet does not have it for this login: weir fleet allow LOGIN ${name}; with -writes the node can make it`;
  return error instanceof DatabaseError ? messageOf(error) : reasonOf(error);
}

/** Of users that are not known here; it is never written. */
function unknownBook({ name, protocol }: ManagedListener): UserBook {
  return { id: UNKNOWN_ID, listener: name, protocol, revision: 1, appliedRevision: 0, users: new Map() };
}

/** Undefined where it takes longer. */
async function within<T>(milliseconds: number, work: Promise<T>): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), milliseconds);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
