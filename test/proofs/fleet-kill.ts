/**
 * Nodes and PostgreSQL are killed at random, the primary for good once, with a synchronous standby in its place: what peers
 * counted is in the ledger but for the last second before each end, nothing is there twice, and no acknowledged change is lost.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Outbound } from "#core/outbound.ts";
import { startFleetDatabase } from "../support/fleet.ts";
import { type NodeCore, startNode } from "../support/fleet-nodes.ts";
import { type AnyJson, stateFolder } from "../support/managed-core.ts";
import { openTcpOrigin, type Origin } from "../support/origin.ts";
import { until } from "../support/until.ts";
import { FOREVER, ofVless } from "../support/user-traffic.ts";

type Random = (below: number) => number;

export interface FleetKillFindings {
  readonly seconds: number;
  readonly nodeKills: number;
  readonly databaseKills: number;
  readonly flows: number;
  /** Bytes at the origin, and in the ledger. */
  readonly sent: number;
  readonly counted: number;
  /** What the last second before the ends of nodes had moved: it may be missing. */
  readonly mayLack: number;
  readonly acknowledged: number;
  readonly faults: readonly string[];
}

const NODES = 3;
const FLOWS_PER_SECOND = 300;
const MOST_BYTES = 2_000;
/** A flow that a kill has left without an answer ends. */
const FLOW_MS = 20_000;
const SETTLE_MS = 180_000;
const CARRIER = ofVless("edge", "", { network: "tcp", udp: true });

export function shownFleetKills(found: FleetKillFindings): string {
  const { seconds, nodeKills, databaseKills, flows, sent, counted, mayLack, acknowledged, faults } = found;
  return (
    `${seconds.toFixed(0)} s, ${NODES} nodes: ${nodeKills} ends of nodes, ${databaseKills} of the primary, one failover; ` +
    `${flows} flows (${(flows / seconds).toFixed(0)}/s), ${sent} bytes at the origin, ${counted} in the ledger, ` +
    `${sent - counted} missing of ${mayLack} that may be; ${acknowledged} changes acknowledged; ${faults.length} wrong`
  );
}

export async function proveFleetKills(
  minutes: number,
  random: Random,
  said: (text: string) => void,
): Promise<FleetKillFindings> {
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await startFleetDatabase({ isDurable: true }));
  const settings = await database.fresh();
  const standby = stack.use(await database.server.standby());
  const name = new URL(settings("x").dsn ?? "").pathname.slice(1);
  let sql = (text: string): string => database.server.sql(text, name);
  const world = stack.use(
    await World.open((node) => {
      const own = settings(node);
      const both = own.dsn?.replace(/@(localhost:\d+)\//, `@$1,localhost:${standby.port}/`) ?? "";
      return { ...own, dsn: both };
    }),
  );
  const startedMs = performance.now();
  const endMs = startedMs + minutes * 60_000;
  const failoverMs = startedMs + minutes * 30_000;
  const working = [
    world.send(() => performance.now() >= endMs),
    world.change(() => performance.now() >= endMs),
  ];
  let [nodeKills, databaseKills, hasFailed] = [0, 0, false];
  while (performance.now() < endMs) {
    await sleep(1_000 + random(8_000));
    if (!hasFailed && performance.now() > failoverMs) {
      await database.server.kill();
      standby.promote();
      sql = (text) => standby.sql(text, name);
      databaseKills++;
      hasFailed = true;
    } else if (!hasFailed && random(4) === 0) {
      await database.server.kill();
      await database.server.start();
      databaseKills++;
    } else {
      await world.kill(random(NODES));
      nodeKills++;
    }
    said(`${nodeKills} ends of nodes, ${databaseKills} of the database`);
  }
  await Promise.all(working);
  const seconds = (performance.now() - startedMs) / 1000;
  const faults = await world.settle();
  // Folded by then: the nodes have nothing more to send.
  const counted = Number(sql("SELECT coalesce(sum(upload), 0) FROM weir.usage_total"));
  const [sent, mayLack] = [world.sent, world.mayLack];
  if (counted > sent) faults.push(`${counted - sent} bytes are counted twice`);
  if (sent - counted > mayLack) faults.push(`${sent - counted} bytes are missing, ${mayLack} may be`);
  faults.push(...world.lost(sql("SELECT name FROM weir.app_user ORDER BY name").split("\n")));
  return {
    seconds,
    nodeKills,
    databaseKills,
    flows: world.flows,
    sent,
    counted,
    mayLack,
    acknowledged: world.acknowledged,
    faults,
  };
}

type SettingsOf = (node: string) => Parameters<typeof startNode>[0];

/** Nodes that can be killed, their clients, and who changes users. */
class World implements AsyncDisposable {
  readonly #settings: SettingsOf;
  readonly #origin: Origin;
  readonly #states = Array.from({ length: NODES }, () => stateFolder());
  readonly #nodes: (NodeCore | null)[] = [];
  readonly #outbounds: (Outbound | null)[] = [];
  readonly #counter: { bytes: number };
  /** By node, bytes of flows that are not back yet. */
  readonly #underWay: number[] = [];
  /** By node, when how many bytes were back: of the last seconds. */
  readonly #moved: { atMs: number; bytes: number }[][] = Array.from({ length: NODES }, () => []);
  readonly #made = new Set<string>();
  readonly #perhaps = new Set<string>();
  #alice: AnyJson | null = null;
  flows = 0;
  mayLack = 0;
  acknowledged = 0;

  private constructor(settings: SettingsOf, origin: Origin, counter: { bytes: number }) {
    this.#settings = settings;
    this.#origin = origin;
    this.#counter = counter;
  }

  static async open(settings: SettingsOf): Promise<World> {
    const counter = { bytes: 0 };
    const origin = await openTcpOrigin((socket) => {
      socket.on("data", (chunk: Buffer) => {
        counter.bytes += chunk.length;
        socket.write(chunk);
      });
      socket.on("end", () => socket.end());
    });
    const world = new World(settings, origin, counter);
    for (let at = 0; at < NODES; at++) await world.#start(at);
    return world;
  }

  /** At the origin. */
  get sent(): number {
    return this.#counter.bytes;
  }

  async kill(at: number): Promise<void> {
    const node = this.#nodes[at] ?? null;
    if (node === null) return;
    this.#nodes[at] = null;
    const atMs = performance.now();
    this.mayLack += this.#underWay[at] ?? 0;
    await node.core.core.stop("SIGKILL");
    const last = this.#moved[at]?.filter((one) => one.atMs > atMs - 1_200) ?? []; // a cut may be late by as much as its turn
    this.mayLack += last.reduce((sum, { bytes }) => sum + bytes, 0);
    await this.#outbounds[at]?.[Symbol.asyncDispose]();
    await node[Symbol.asyncDispose]();
    await this.#start(at);
  }

  async send(isOver: () => boolean): Promise<void> {
    const workers = Array.from({ length: NODES }, (_, at) => this.#sendBy(at, isOver));
    await Promise.all(workers);
  }

  /** Makes users on any node; each that was acknowledged is to be there in the end. */
  async change(isOver: () => boolean): Promise<void> {
    for (let at = 0; !isOver(); at++) {
      const node = this.#nodes[at % NODES] ?? null;
      const name = `user ${at}`;
      if (node !== null) {
        try {
          const revision = await node.core.revision("edge");
          this.#perhaps.add(name);
          const body = { inbound: "edge", name, revision };
          const { status } = await node.core.ask("POST", "/api/admin/users", { body });
          if (status === 201) {
            this.acknowledged++;
            this.#made.add(name);
          }
        } catch {
          // the node was killed: it was made or not
        }
      }
      await sleep(200);
    }
  }

  /** Until the nodes have nothing more to send. */
  async settle(): Promise<string[]> {
    const faults: string[] = [];
    for (const node of this.#nodes) {
      if (node === null) continue;
      let waiting = -1;
      const isDone = async (): Promise<boolean> => {
        const { database, nodes } = await node.fleet();
        waiting = nodes.find(({ self }) => self === true)?.unacknowledged ?? -1;
        return database.state === "up" && waiting === 0;
      };
      await until(() => `${node.name} has sent all: ${waiting}`, isDone, {
        withinMs: SETTLE_MS,
        everyMs: 500,
      });
    }
    await sleep(5_000); // the last beat and fold
    return faults;
  }

  /** Users that were acknowledged and are not there, and those that nothing has made. */
  lost(present: readonly string[]): readonly string[] {
    const there = new Set(present);
    const gone = [...this.#made]
      .filter((name) => !there.has(name))
      .map((name) => `${name} was acknowledged and is lost`);
    const strange = present.filter((name) => name !== "alice" && !this.#perhaps.has(name));
    return [...gone, ...strange.map((name) => `${name} was never asked for`)];
  }

  async #start(at: number): Promise<void> {
    const node = await startNode(this.#settings(`node-${at}`), {
      store: this.#states[at]?.store ?? "",
      managed: ["edge"],
      isAlone: this.#alice !== null,
    });
    this.#alice ??= await node.core.create("edge", "alice");
    const alice = this.#alice;
    await until("alice", async () => (await node.core.user(alice.id)).uuid === alice.uuid, {
      withinMs: 60_000,
    });
    this.#outbounds[at] = await CARRIER.open(await node.core.core.port("edge"), alice);
    this.#nodes[at] = node;
  }

  async #sendBy(at: number, isOver: () => boolean): Promise<void> {
    const pauseMs = (1000 * NODES) / FLOWS_PER_SECOND;
    const startedMs = performance.now();
    const open = new Set<Promise<void>>();
    for (let flow = 0; !isOver(); flow++) {
      const outbound = this.#nodes[at] === null ? null : (this.#outbounds[at] ?? null);
      if (outbound !== null && open.size < 200) {
        const work = this.#exchange(outbound, at, 1 + ((flow * 7919) % MOST_BYTES)).catch(() => {}); // killed
        open.add(work);
        void work.then(() => open.delete(work));
      }
      const dueMs = startedMs + (flow + 1) * pauseMs;
      await sleep(Math.max(0, dueMs - performance.now()));
    }
    await Promise.all(open);
  }

  async #exchange(outbound: Outbound, at: number, bytes: number): Promise<void> {
    const stream = await outbound.connect(this.#origin.destination, {
      signal: AbortSignal.any([FOREVER, AbortSignal.timeout(FLOW_MS)]),
      metadata: null,
    });
    stream.on("error", () => {});
    const late = setTimeout(() => stream.destroy(), FLOW_MS);
    const done = new Promise<void>((resolve) => stream.once("close", () => resolve()));
    let got = 0;
    stream.on("data", (chunk: Buffer) => {
      got += chunk.length;
      if (got >= bytes) stream.destroy();
    });
    this.#underWay[at] = (this.#underWay[at] ?? 0) + bytes;
    stream.write(Buffer.alloc(bytes, 1));
    await done;
    clearTimeout(late);
    this.#underWay[at] -= bytes;
    if (got < bytes) return;
    this.flows++;
    this.#note(at, bytes);
  }

  #note(at: number, bytes: number): void {
    const moved = this.#moved[at] ?? [];
    moved.push({ atMs: performance.now(), bytes });
    while ((moved[0]?.atMs ?? Infinity) < performance.now() - 5_000) moved.shift();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const outbound of this.#outbounds) await outbound?.[Symbol.asyncDispose]();
    for (const node of this.#nodes) await node?.[Symbol.asyncDispose]();
    for (const state of this.#states) state[Symbol.dispose]();
    await this.#origin[Symbol.asyncDispose]();
  }
}
