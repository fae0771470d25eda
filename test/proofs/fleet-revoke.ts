/**
 * A user is disabled on one node: how soon every node has cut the user's connection, and how long the change takes. The others
 * yield the processor to that node and the database and keep their files in memory: they have a machine and a disk of their own
 * elsewhere.
 */
import type { Duplex } from "node:stream";
import type { Outbound } from "#core/outbound.ts";
import type { FleetDatabase } from "../support/fleet.ts";
import { agree, type NodeCore, startNode } from "../support/fleet-nodes.ts";
import { stateFolder } from "../support/managed-core.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { quantile } from "../support/slow-clients.ts";
import { FOREVER } from "../support/user-traffic.ts";
import { PLAIN_VLESS, publishUsers } from "./fleet-start.ts";

export interface RevokeFindings {
  readonly nodes: number;
  readonly users: number;
  /** From the answer of the change to the end of the connection, of every node and change; ascending, ms. */
  readonly cutMs: readonly number[];
  /** From the request to its answer; ascending, ms. */
  readonly changeMs: readonly number[];
}

const MEMORY = "/dev/shm";

export async function proveFleetRevoke(
  database: FleetDatabase,
  {
    nodes: count,
    users,
    rounds,
  }: { readonly nodes: number; readonly users: number; readonly rounds: number },
): Promise<RevokeFindings> {
  const settings = await database.fresh();
  const records = await publishUsers(settings("x"), users);
  await using stack = new AsyncDisposableStack();
  await using origin = await openTcpOrigin((socket) => void socket.pipe(socket));
  const nodes: NodeCore[] = [];
  for (let at = 0; at < count; at++) {
    const beside = {
      store: stack.use(stateFolder(MEMORY)).store,
      start: { prefix: ["chrt", "--idle", "0"] },
    };
    const options = { managed: ["edge"], ...(at === 0 ? {} : beside) };
    nodes.push(stack.use(await startNode(settings(`node-${at}`), options)));
  }
  await agree("edge", ...nodes);
  const [first] = nodes;
  if (first === undefined) throw new Error("no node");
  const ports = await Promise.all(nodes.map(({ core }) => core.core.port("edge")));
  const cutMs: number[] = [];
  const changeMs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const { id, uuid } = await first.core.user(records[round % records.length]?.id ?? "");
    const outbounds: Outbound[] = [];
    const streams: Duplex[] = [];
    for (const port of ports) {
      const outbound = await PLAIN_VLESS.open(port, { uuid, password: "" });
      outbounds.push(outbound);
      const stream = await outbound.connect(origin.destination, { signal: FOREVER, metadata: null });
      stream.on("error", () => {});
      stream.write("x");
      await new Promise((resolve) => stream.once("data", resolve));
      streams.push(stream);
    }
    const ended = streams.map(
      (stream) =>
        new Promise<number>((resolve) => {
          for (const event of ["end", "close"]) stream.once(event, () => resolve(performance.now()));
        }),
    );
    for (const stream of streams) stream.resume();
    const revision = await first.core.revision("edge");
    const askedMs = performance.now();
    const body = { revision, enabled: false };
    const said = await first.core.ask("PUT", `/api/admin/users/${id}`, { body });
    const answeredMs = performance.now();
    if (said.status !== 200) throw new Error(said.text);
    changeMs.push(answeredMs - askedMs);
    for (const atMs of await Promise.all(ended)) cutMs.push(Math.max(0, atMs - answeredMs));
    for (const outbound of outbounds) await outbound[Symbol.asyncDispose]();
  }
  const ascending = (values: readonly number[]) => values.toSorted((a, b) => a - b);
  return { nodes: count, users, cutMs: ascending(cutMs), changeMs: ascending(changeMs) };
}

export function shownRevoke({ nodes, users, cutMs, changeMs }: RevokeFindings): string {
  const text = (values: readonly number[]) =>
    `p50 ${quantile(values, 0.5).toFixed(0)} ms, p99 ${quantile(values, 0.99).toFixed(0)} ms, longest ${(values.at(-1) ?? 0).toFixed(0)} ms`;
  return `${nodes} nodes, ${users} users, ${changeMs.length} revocations: cut ${text(cutMs)}; change ${text(changeMs)}`;
}
