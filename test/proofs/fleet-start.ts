/**
 * How long a node with many users takes until it relays for them: with its database, without, and with one that never answers.
 * The node is a build as people install it.
 */
import { createServer } from "node:net";
import { once } from "node:events";
import { connect } from "#fleet/connection.ts";
import { publishListener } from "#fleet/listeners.ts";
import { TokenSeal } from "#fleet/seal.ts";
import { databaseOptions } from "#fleet/source.ts";
import type { Destination } from "#core/session.ts";
import type { FleetSettings } from "#users/fleet-settings.ts";
import type { UserRecord } from "#users/user-book.ts";
import { type FleetDatabase, patient } from "../support/fleet.ts";
import { startNode } from "../support/fleet-nodes.ts";
import { cpuSecondsOf } from "../support/cpu-seconds.ts";
import { builtProgram } from "../support/built-program.ts";
import { aBook } from "../support/fleet-users.ts";
import { ADMIN_SECRET, stateFolder } from "../support/managed-core.ts";
import { openTcpOrigin } from "../support/origin.ts";
import { until } from "../support/until.ts";
import { FOREVER, ofVless } from "../support/user-traffic.ts";

/** Of a managed listener `edge` without TLS. */
export const PLAIN_VLESS = ofVless("edge", "", { network: "tcp", udp: true });

export interface StartFindings {
  readonly users: number;
  readonly first: Start;
  readonly again: Start;
  readonly silent: Start;
  readonly away: Start;
  /** What the node with the silent database says of it. */
  readonly said: string;
}

interface Start {
  /** From the start of the process until a byte of a user has come back by the listener. */
  readonly servedMs: number;
  /** Until the API, which loads then, shows all users. */
  readonly shownMs: number;
  /** Of the process until then. */
  readonly cpuSeconds: number;
}

/** A listener `edge` with so many users, in the database alone. */
export async function publishUsers(settings: FleetSettings, users: number): Promise<readonly UserRecord[]> {
  const own = { ...settings, dsn: patient(settings.dsn ?? "") };
  const client = await connect({ ...databaseOptions(own, {}), statementTimeoutMs: 120_000 });
  const book = aBook("edge", ...Array.from({ length: users }, (_, at) => `user ${at}`));
  await publishListener(client, book, { node: "x", seal: new TokenSeal(ADMIN_SECRET), traffic: new Map() });
  await client.end();
  return [...book.users.values()];
}

export async function proveStart(database: FleetDatabase, users: number): Promise<StartFindings> {
  const settings = (await database.fresh())("fra-1");
  const user = (await publishUsers(settings, users)).at(-1);
  if (user === undefined) throw new Error("no user");
  using state = stateFolder();
  using program = await builtProgram();
  await using origin = await openTcpOrigin((socket) => void socket.pipe(socket));
  const port = new URL(settings.dsn ?? "").port;
  const measure = async (dsn: string): Promise<Start & { readonly reason: string }> => {
    const startedMs = performance.now();
    const options = {
      store: state.store,
      managed: ["edge"],
      isAlone: true,
      start: { program: program.path },
    };
    await using node = await startNode({ ...settings, dsn }, options);
    const edge = await node.core.core.port("edge");
    const isServed = () => comesBack(edge, user.credential, origin.destination);
    await until("an answer", isServed, { everyMs: 20, withinMs: 120_000 });
    const servedMs = performance.now() - startedMs;
    const isThere = async (): Promise<boolean> => {
      const { json } = await node.core.ask("GET", "/api/admin/inbounds");
      return JSON.stringify(json.inbounds).includes(`"user_count":${users},`);
    };
    await until(`${users} users`, isThere, { everyMs: 50, withinMs: 120_000 });
    const shownMs = performance.now() - startedMs;
    const cpuSeconds = cpuSecondsOf(node.core.core.pid);
    const { database: seen } = await node.fleet();
    return { servedMs, shownMs, cpuSeconds, reason: `${seen.state}: ${seen.reason ?? ""}` };
  };
  const dsn = settings.dsn ?? "";
  const first = await measure(dsn);
  const again = await measure(dsn);
  const silent = createServer(() => {}); // accepts, and says nothing
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const address = silent.address();
  const silentPort = typeof address === "object" && address !== null ? address.port : 0;
  const unanswered = await measure(dsn.replace(`:${port}/`, `:${silentPort}/`));
  silent.close();
  const away = await measure(dsn.replace(`:${port}/`, ":1/"));
  return { users, first, again, silent: unanswered, away, said: unanswered.reason };
}

/** Is a user let in, and its byte relayed? */
async function comesBack(port: number, uuid: string, origin: Destination): Promise<boolean> {
  await using outbound = await PLAIN_VLESS.open(port, { uuid, password: "" });
  const stream = await outbound.connect(origin, { signal: FOREVER, metadata: null });
  const answer = new Promise<boolean>((resolve) => {
    stream.once("data", () => resolve(true)).once("close", () => resolve(false));
    stream.on("error", () => {});
  });
  stream.write("x");
  return answer.finally(() => stream.destroy());
}

export function shownStart({ users, first, again, silent, away, said }: StartFindings): string {
  const seconds = (ms: number): string => (ms / 1000).toFixed(2);
  const text = ({ servedMs, shownMs, cpuSeconds }: Start) =>
    `served after ${seconds(servedMs)} s, shown after ${seconds(shownMs)} s (${cpuSeconds.toFixed(2)} of CPU)`;
  return (
    `${users} users: without a state file ${text(first)}; with one ${text(again)}; ` +
    `database away ${text(away)}; database that never answers ${text(silent)}, which says ${said}`
  );
}
