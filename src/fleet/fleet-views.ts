/** What the API sees of a fleet, and what it commands, from any node. */
import type { QueryResultRow } from "pg";
import { ApiError } from "#core/errors.ts";
import type { FleetAdmin, FleetDatabaseView, FleetView } from "#core/fleet.ts";
import type { UserRegistry } from "#users/user-registry.ts";
import type { FleetConnection } from "./fleet-connection.ts";
import { answerFor, away } from "./fleet-repository.ts";
import { fetchNodes, type FleetNode } from "./nodes.ts";
import { within } from "./within.ts";

export interface FleetViewsEnv {
  readonly self: string;
  readonly selfId: string;
  readonly connection: FleetConnection;
  readonly database: () => FleetDatabaseView;
  readonly registry: UserRegistry;
  readonly monotonicMs: () => number;
  /** Brings the counters of users up to date. */
  readonly refresh: () => Promise<void>;
}

/** Older than this, what views show of other nodes is asked for anew. */
const FRESH_MS = 1_000;
/** What a view waits for that. */
const MOST_WAIT_MS = 1_000;

export class FleetViews implements FleetAdmin {
  readonly #env: FleetViewsEnv;
  #nodes: readonly FleetNode[] = [];
  #freshAtMs = -Infinity;

  constructor(env: FleetViewsEnv) {
    this.#env = env;
  }

  async freshen(): Promise<void> {
    const nowMs = this.#env.monotonicMs();
    if (!this.#env.database().isUp || nowMs - this.#freshAtMs < FRESH_MS) return;
    this.#freshAtMs = nowMs;
    await within(MOST_WAIT_MS, Promise.allSettled([this.#fetch(), this.#env.refresh()]));
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
  }

  async #fetch(): Promise<void> {
    this.take(await this.#env.connection.run((client) => fetchNodes(client, this.#env.selfId)));
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
