/** What a node says of itself every few seconds, and hears of the others. */
import type { Client } from "pg";
import type { LiveConnections } from "#core/live.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import { UNKNOWN_ID } from "#users/user-book.ts";
import type { UserRegistry } from "#users/user-registry.ts";
import type { NodeIdentity } from "./identity.ts";
import { ownLinks } from "./links.ts";
import { fetchNodes, type FleetNode } from "./nodes.ts";

export interface BeatEnv {
  readonly identity: NodeIdentity;
  readonly registry: UserRegistry;
  /** What links name. */
  readonly address: string;
  readonly live: LiveConnections;
  readonly inbounds: () => Iterable<ManagedInbound>;
  readonly monotonicMs: () => number;
  /** Bytes of the last minute, ledger entries that wait. */
  readonly measured: () => {
    readonly upload: number;
    readonly download: number;
    readonly unacknowledged: number;
  };
  readonly onNodes: (nodes: readonly FleetNode[]) => void;
  /** There is something to say before the next round. */
  readonly wake: () => void;
}

const BEAT_MS = 3_000;
/** How soon others are told what is in force here. */
const SOON_MS = 200;

export class Beat {
  readonly #env: BeatEnv;
  #atMs = -Infinity;
  /** When the other nodes were read last. */
  #readAtMs = -Infinity;
  /** The revisions in force here, as they were reported last. */
  #applied = "";
  /** What the database has of this node's links; "": nothing is known. */
  #links = "";

  constructor(env: BeatEnv) {
    this.#env = env;
  }

  /** The database may have forgotten what was said. */
  begin(): void {
    this.#links = "";
  }

  /** Rejects as the driver does, and where this node is no longer enrolled. */
  async run(client: Client): Promise<void> {
    const { registry, identity, live, wake, measured, monotonicMs, onNodes } = this.#env;
    const nowMs = monotonicMs();
    const applied = JSON.stringify(appliedIn(registry));
    const isDue = nowMs - this.#atMs >= (applied === this.#applied ? BEAT_MS : SOON_MS);
    if (!isDue) {
      if (applied !== this.#applied) setTimeout(wake, SOON_MS).unref();
      return;
    }
    const stats = {
      connections: [...live].length,
      ...measured(),
      upload_total: live.uploadTotalBytes,
      download_total: live.downloadTotalBytes,
    };
    const links = this.#newLinks();
    const { rows } = await client.query<{ is_draining: boolean | null }>(
      "SELECT weir.beat($1, $2, $3, $4, $5) AS is_draining",
      [identity.nodeId, identity.instance, applied, links, stats],
    );
    const isDraining = rows[0]?.is_draining ?? null;
    if (isDraining === null) throw new Error("this node was taken out of the fleet, it enrolls again");
    registry.isDraining = isDraining;
    this.#atMs = nowMs;
    this.#applied = applied;
    if (links !== null) this.#links = shapeOf(links);
    // Not behind every change: it would be a row of every node for every node, at one moment.
    if (nowMs - this.#readAtMs < BEAT_MS) return;
    this.#readAtMs = nowMs;
    onNodes(await fetchNodes(client, identity.nodeId));
  }

  /** Null: the database has them. */
  #newLinks(): string | null {
    const { registry, address, inbounds } = this.#env;
    const links = JSON.stringify(ownLinks(registry, address, inbounds()));
    return shapeOf(links) === this.#links ? null : links;
  }
}

/** Without the credentials, which are made up anew each time. */
function shapeOf(links: string): string {
  return links.replaceAll(/:\/\/[^@"]*@/g, "://@");
}

function appliedIn(registry: UserRegistry): Readonly<Record<string, number>> {
  const books = [...registry.listeners.keys()].flatMap((tag) => registry.books.get(tag) ?? []);
  return Object.fromEntries(
    books.flatMap(({ id, listener, appliedRevision }) =>
      id === UNKNOWN_ID ? [] : [[listener, appliedRevision]],
    ),
  );
}
