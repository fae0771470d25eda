/** Nodes of a fleet as real programs. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fleetBlock, type NodeSettings } from "./fleet.ts";
import { ManagedCore, type ManagedOptions, type StartedWith, stateFolder } from "./managed-core.ts";
import { until } from "./until.ts";

export interface NodeCore extends AsyncDisposable {
  readonly core: ManagedCore;
  readonly name: string;
  fleet(): Promise<FleetJson>;
  /** A listener's revision in force here. */
  applied(tag: string): Promise<number>;
}

/** What a test reads of `/api/svc/fleet`. */
export interface FleetJson {
  readonly self: string;
  readonly database: { readonly state: string; readonly reason?: string };
  readonly nodes: readonly {
    readonly name: string;
    readonly state: string;
    readonly epoch: number;
    readonly self?: true;
    readonly applied: Readonly<Record<string, number>>;
    readonly unacknowledged: number;
  }[];
}

interface NodeOptions extends ManagedOptions, Pick<StartedWith, "start"> {
  /** The database is not to be had, or refuses this node: it is not waited for. */
  readonly isAlone?: boolean;
}

/** With `store` absent, its state is gone with the node. Settles when it has its users from the database. */
export async function startNode(
  settings: NodeSettings,
  { isAlone = false, ...options }: NodeOptions = {},
): Promise<NodeCore> {
  const folder = options.store === undefined ? stateFolder() : null;
  const store = options.store ?? folder?.store ?? "";
  const core = await ManagedCore.start({
    ...options,
    store,
    folder: join(store, ".."),
    fleet: fleetBlock(settings),
    start: { ...options.start, seed: (home) => writeFileSync(join(home, "ca.pem"), settings.ca ?? "") },
  });
  const fleet = async (): Promise<FleetJson> =>
    JSON.parse((await core.ask("GET", "/api/svc/fleet")).text) as FleetJson;
  const node: NodeCore = {
    core,
    name: settings.node,
    fleet,
    async applied(tag) {
      const own = (await fleet()).nodes.find(({ name }) => name === settings.node);
      return own?.applied[tag] ?? 0;
    },
    async [Symbol.asyncDispose]() {
      await core[Symbol.asyncDispose]();
      folder?.[Symbol.dispose]();
    },
  };
  // On a busy machine the node has begun without the database, and its users come a moment later.
  if (!isAlone)
    await until("users from the database", async () => (await node.applied("edge")) > 0, {
      withinMs: 60_000,
    });
  return node;
}

/** Until all have in force what any of them has. */
export async function agree(tag: string, ...nodes: readonly NodeCore[]): Promise<void> {
  const revisions = () => Promise.all(nodes.map(({ core }) => core.revision(tag)));
  await until(`agreement on ${tag}`, async () => new Set(await revisions()).size === 1);
}
