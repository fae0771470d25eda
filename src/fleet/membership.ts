/**
 * The connection on which a node lives in its fleet: it enrolls, is told of changes, beats, and is made anew after it was
 * lost. Without it the node serves from its snapshot.
 */
import type { Client } from "pg";
import type { FleetDatabaseView } from "#core/fleet.ts";
import type { Log } from "#core/log.ts";
import { abandon, connect, type DatabaseOptions } from "./connection.ts";
import { FleetError, reasonOf } from "./errors.ts";
import type { NodeIdentity } from "./identity.ts";
import { proveSeal } from "./listeners.ts";
import { refuseOtherSchema } from "./migrate.ts";
import type { TokenSeal } from "./seal.ts";
import { Waker } from "./waker.ts";

export interface MembershipEnv {
  readonly options: () => DatabaseOptions;
  readonly identity: NodeIdentity;
  readonly seal: TokenSeal;
  readonly about: {
    readonly name: string;
    readonly address: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly version: string;
  };
  readonly log: Log;
  readonly nowMs: () => number;
  /** How many nodes the fleet has, as far as is known. */
  readonly size: () => number;
  /** One round on the open connection: what has changed is fetched, and what is in force here reported. */
  readonly round: (client: Client) => Promise<void>;
  /** The node is enrolled anew, and the database may have lost what was passing. */
  readonly onEntered: () => void;
  /** This process must not serve the users of the fleet: another one is this node. */
  readonly onRefused: (error: FleetError) => void;
}

/** NOTIFY only wakes; what it has lost is found by asking. */
const ASK_MS = 2_000;
const FIRST_PAUSE_MS = 250;
const MOST_PAUSE_MS = 2_000;
/**
 * A notification wakes all nodes at one moment. They ask over so long for each node of the fleet, so that the database has the
 * answer of the change out, and never has as many statements under way as there are nodes.
 */
const SPREAD_MS = { eachNode: 2, most: 100 };
const CHANNELS = ["weir_change", "weir_node"];
/**
 * A server that went silent is noticed by both ends, and the lock of this node is free again. Reading the nodes of a large fleet
 * takes some milliseconds, and would be compiled for some hundred each time.
 */
const SETTINGS =
  "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 3; SET tcp_keepalives_count = 3; SET jit = off";

export class Membership {
  readonly #env: MembershipEnv;
  readonly #waker = new Waker();
  #spread: NodeJS.Timeout | null = null;
  #client: Client | null = null;
  #state: FleetDatabaseView;
  #isOver = false;
  readonly #left = Promise.withResolvers<void>();
  #opened = Promise.withResolvers<void>();
  readonly #tried = Promise.withResolvers<void>();
  readonly #ended: Promise<void>;

  constructor(env: MembershipEnv) {
    this.#env = env;
    this.#state = { isUp: false, sinceMs: env.nowMs(), reason: "not connected yet" };
    this.#ended = this.#run();
  }

  get state(): FleetDatabaseView {
    return this.#state;
  }

  /** Resolves when the node is connected, or refused; never rejects. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  /** Resolves when the first attempt to connect has come to something, whatever it is; never rejects. */
  get tried(): Promise<void> {
    return this.#tried.promise;
  }

  /** Something is to be fetched or reported. */
  wake(): void {
    this.#waker.wake();
  }

  async leave(): Promise<void> {
    this.#isOver = true;
    this.#left.resolve();
    if (this.#spread !== null) clearTimeout(this.#spread);
    this.#letGo();
    this.#waker.wake();
    await this.#ended;
  }

  #wakeSoon(): void {
    const mostMs = Math.min(SPREAD_MS.most, (this.#env.size() - 1) * SPREAD_MS.eachNode);
    this.#spread ??= setTimeout(() => {
      this.#spread = null;
      this.#waker.wake();
    }, Math.random() * mostMs).unref();
  }

  async #run(): Promise<void> {
    const { log } = this.#env;
    let pauseMs = FIRST_PAUSE_MS;
    let said = "";
    while (!this.#isOver) {
      try {
        const client = await this.#enter();
        log.info(said === "" ? "fleet: connected" : "fleet: connected again");
        said = "";
        pauseMs = FIRST_PAUSE_MS;
        await this.#stay(client);
      } catch (error) {
        const reason = reasonOf(error);
        this.#away(reason);
        this.#tried.resolve();
        if (this.#isOver) break;
        if (reason !== said)
          log.warning(
            `fleet: the database is away, users are served as they were last known and cannot be changed: ${reason}`,
          );
        said = reason;
      }
      this.#letGo();
      await pause(pauseMs * (0.75 + Math.random() / 2), this.#left);
      pauseMs = Math.min(MOST_PAUSE_MS, pauseMs * 2);
    }
    this.#letGo();
  }

  #letGo(): void {
    if (this.#client !== null) abandon(this.#client);
    this.#client = null;
  }

  async #enter(): Promise<Client> {
    const { options, identity, seal, about, onRefused } = this.#env;
    const client = await connect(options());
    this.#client = client;
    client.once("end", () => this.#waker.wake());
    client.on("notification", () => this.#wakeSoon());
    await client.query(SETTINGS);
    await refuseOtherSchema(client);
    await proveSeal(client, seal);
    const { nodeId, epoch, instance } = identity;
    const values = [nodeId, about.name, about.address, about.labels, about.version, epoch, instance];
    const { rows } = await client.query<{ fault: string | null }>(
      "SELECT weir.enroll($1, $2, $3, $4, $5, $6, $7) AS fault",
      values,
    );
    const fault = rows[0]?.fault ?? null;
    if (fault === "copied") {
      const error = copied(about.name);
      this.#isOver = true;
      this.#opened.resolve(); // there is nothing more to wait for
      onRefused(error);
      throw error;
    }
    if (fault === "named")
      throw new FleetError(`another live node is called ${about.name}; svc.fleet.node names this one`);
    if (fault !== null) throw new FleetError(fault);
    for (const channel of CHANNELS) await client.query(`LISTEN ${channel}`);
    this.#state = { isUp: true, sinceMs: this.#env.nowMs(), reason: "" };
    this.#opened.resolve();
    this.#tried.resolve();
    this.#env.onEntered();
    await this.#env.round(client);
    return client;
  }

  /** Until the connection is lost, which rejects, or the node leaves. */
  async #stay(client: Client): Promise<void> {
    let isLost = false;
    client.once("end", () => (isLost = true));
    while (!this.#isOver) {
      await this.#waker.wait(ASK_MS);
      if (this.#isOver) return;
      if (isLost) throw new FleetError("the connection was lost");
      await this.#env.round(client);
    }
  }

  #away(reason: string): void {
    if (this.#state.isUp) this.#opened = Promise.withResolvers();
    const sinceMs = this.#state.isUp ? this.#env.nowMs() : this.#state.sinceMs;
    this.#state = { isUp: false, sinceMs, reason };
  }
}

/** Not woken by notifications: a database that lets in and throws out is not asked without a pause. */
async function pause(milliseconds: number, left: { readonly promise: Promise<void> }): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds).unref();
  await Promise.race([promise, left.promise]);
  clearTimeout(timer);
}

export function copied(name: string): FleetError {
  return new FleetError(
    `another process is node ${name} already, with a copy of this state file; stop one of the two, and give this one ` +
      "another svc.store (it gets the users from the fleet) and another svc.fleet.node",
  );
}
