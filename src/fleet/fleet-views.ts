/** What the API sees of a fleet, and what it commands, from any node. */
import type { Client, QueryResultRow } from "pg";
import { ApiError } from "#core/errors.ts";
import type {
  FleetAdmin,
  FleetCounts,
  FleetDatabaseView,
  FleetView,
  HourAt,
  OnlineAt,
  OnNode,
} from "#core/fleet.ts";
import type { UserRegistry } from "#users/user-registry.ts";
import { fetchAddresses, fetchHours, fetchMoved, fetchOnline, type Online } from "./by-node.ts";
import type { FleetConnection } from "./fleet-connection.ts";
import { answerFor, away } from "./fleet-repository.ts";
import { servingNodes } from "./links.ts";
import { fetchNodes, type FleetNode } from "./nodes.ts";
import { within } from "./within.ts";

export interface FleetViewsEnv {
  readonly self: string;
  readonly selfId: string;
  readonly connection: FleetConnection;
  readonly database: () => FleetDatabaseView;
  readonly registry: UserRegistry;
  readonly monotonicMs: () => number;
  readonly nowMs: () => number;
  readonly counts: () => FleetCounts;
  /** Brings the counters of users up to date. */
  readonly refresh: () => Promise<void>;
  /** The database takes what was counted here. Rejects as the connection does. */
  readonly settle: () => Promise<void>;
}

/** Older than this, what views show of other nodes is asked for anew. */
const FRESH_MS = 1_000;
/** What a view waits for that. */
const MOST_WAIT_MS = 1_000;
/** Older than this, what is online on other nodes is shown no more. */
const ONLINE_LIFE_MS = 30_000;

export class FleetViews implements FleetAdmin {
  readonly #env: FleetViewsEnv;
  #nodes: readonly FleetNode[] = [];
  #freshAtMs = -Infinity;
  #onlineAtMs = -Infinity;

  constructor(env: FleetViewsEnv) {
    this.#env = env;
  }

  async freshen(): Promise<void> {
    const nowMs = this.#env.monotonicMs();
    if (nowMs - this.#onlineAtMs >= ONLINE_LIFE_MS) this.#env.registry.onlineElsewhere = new Map();
    if (!this.#env.database().isUp || nowMs - this.#freshAtMs < FRESH_MS) return;
    this.#freshAtMs = nowMs;
    const fetched = [this.#fetch(), this.#fetchOnline(), this.#env.refresh()];
    await within(MOST_WAIT_MS, Promise.allSettled(fetched));
  }

  get counts(): FleetCounts {
    return this.#env.counts();
  }

  online(userId: string): Promise<readonly OnlineAt[] | null> {
    const about = { selfId: this.#env.selfId, nowMs: this.#env.nowMs() };
    return this.#ask((client) => fetchAddresses(client, userId, about));
  }

  hours(userId: string): Promise<readonly HourAt[] | null> {
    return this.#ask(async (client) => {
      await this.#env.settle();
      return fetchHours(client, userId);
    });
  }

  byNode(userId: string | null): Promise<ReadonlyMap<string, readonly OnNode[]> | null> {
    const { registry, selfId, self } = this.#env;
    return this.#ask(async (client) => {
      if (userId !== null) await this.#env.settle();
      const online = new Map(await fetchOnline(client, selfId));
      for (const { id, presence } of registry.presences.all())
        online.set(id, new Map([[self, presence.size], ...(online.get(id) ?? [])]));
      return fetchMoved(client, userId, online);
    });
  }

  get seen(): FleetView {
    return { self: this.#env.self, database: this.#env.database(), nodes: this.#nodes };
  }

  async view(): Promise<FleetView> {
    if (this.#env.database().isUp) await within(MOST_WAIT_MS, Promise.allSettled([this.#fetch()]));
    return this.seen;
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

  /** What the database says of all nodes. */
  take(nodes: readonly FleetNode[]): void {
    this.#nodes = nodes;
    this.#env.registry.appliedElsewhere = nodes.flatMap(({ name, applied, state, isSelf }) =>
      isSelf || (state !== "live" && state !== "draining") ? [] : [{ node: name, applied }],
    );
    this.#env.registry.serving = servingNodes(nodes);
  }

  async #fetch(): Promise<void> {
    this.take(await this.#env.connection.run((client) => fetchNodes(client, this.#env.selfId)));
  }

  async #fetchOnline(): Promise<void> {
    const online: Online = await this.#env.connection.run((client) => fetchOnline(client, this.#env.selfId));
    this.#env.registry.onlineElsewhere = online;
    this.#onlineAtMs = this.#env.monotonicMs();
  }

  /** Null: there is no answer in time. */
  async #ask<T>(work: (client: Client) => Promise<T>): Promise<T | null> {
    if (!this.#env.database().isUp) return null;
    const asked = this.#env.connection.run(work).catch(() => null);
    return (await within(MOST_WAIT_MS, asked)) ?? null;
  }

  async #command<Row extends QueryResultRow>(
    text: string,
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    const { isUp, reason } = this.#env.database();
    if (!isUp) throw away(`${reason}; nothing was changed`);
    try {
      const rows = await this.#env.connection.query<Row>(text, values);
      await this.#fetch();
      return rows;
    } catch (error) {
      throw answerFor(error, "it is done soon, or was not");
    }
  }
}

function noNode(node: string): ApiError {
  return new ApiError(404, `the fleet has no node ${node}`);
}
