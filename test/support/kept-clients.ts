/** A server whose clients stay with workers, and which dials where they want to go as it is told. */
import { connect } from "node:net";
import type { AcceptedConnection } from "#core/accepted.ts";
import type { DialPlan } from "#core/dial-plan.ts";
import type { DialError } from "#core/errors.ts";
import type { ManagedInbound } from "#core/inbound.ts";
import type { Meter } from "#core/meter.ts";
import type { Protocol } from "#core/protocol.ts";
import type { DatagramSession, OffloadedClient, StreamSession } from "#core/session.ts";
import { IdleTimers } from "#dataplane/idle-timers.ts";
import { openWorkerBackend, type WorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import { ANY_V4, LOOPBACK_V4 } from "#net/address/ip.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import type { UnauthenticatedPool } from "#net/listen/unauthenticated-clients.ts";
import { planningDialer } from "./direct-accept.ts";
import { openInboundEnv } from "./inbound-env.ts";
import { unlimited } from "./relayed.ts";
import { tlsLibrary } from "./tls.ts";

export interface KeptClients extends AsyncDisposable {
  readonly port: number;
  readonly engine: WorkerBackend;
  readonly inbound: ManagedInbound;
  readonly sessions: readonly StreamSession[];
  /** Sessions that a worker had when they were accepted. */
  readonly kept: readonly OffloadedClient[];
  /** Whose destination was reached, and whose bytes were moved since, by the end of each. */
  readonly ended: readonly { readonly upload: number; readonly download: number }[];
  readonly failures: readonly (DialError | null)[];
  /** In place of a dial; called, too, where one has failed. */
  instead: ((session: StreamSession) => void) | null;
  /** Called with what is datagrams; null: it is left alone. */
  onFlow: ((session: DatagramSession) => void) | null;
  /** Of the destinations of sessions that follow. */
  plan: Partial<DialPlan>;
  /** Workers accept no more for it, and hand over who has not said enough. */
  stopAccepting(): Promise<void>;
  /** By which they move bytes. */
  meter: Meter;
  /** Clients that have not shown who they are. */
  readonly unauthenticated: UnauthenticatedPool;
}

const TIMES = { timers: new IdleTimers(), idleMs: Infinity, halfClosedIdleMs: Infinity };

function dialHere(session: StreamSession): void {
  const { stream } = session;
  const far = connect({ port: session.metadata.destination.port, host: LOOPBACK_V4, allowHalfOpen: true });
  session.reply(null);
  stream.on("error", () => far.destroy()).pipe(far);
  far.on("error", () => stream.destroy()).pipe(stream);
}

/** `seams`: how long those of its threads last, see seams.ts. */
export async function openKeptClients(
  protocol: Protocol,
  raw: object,
  threads = 1,
  seams?: SharedArrayBuffer,
): Promise<KeptClients> {
  await using opened = new AsyncDisposableStack();
  const engine = opened.use(await openWorkerBackend({ tlsLibrary, threads, onDeath: () => {}, seams }));
  const pool = new SocketPool();
  pool.useThreads(engine.accepting);
  const sessions: StreamSession[] = [];
  const kept: OffloadedClient[] = [];
  const ended: { upload: number; download: number }[] = [];
  const failures: (DialError | null)[] = [];
  const dial = (session: StreamSession, client: OffloadedClient): void => {
    const { worker, success, wire } = client;
    const bytes = { upload: 0, download: 0 };
    const onEnded = (): void => {
      ended.push(bytes);
      session.ended?.();
    };
    worker.events = {
      dialled() {
        engine.resume(worker, owner.meter, TIMES, {
          onBytes: (direction, count) => void (bytes[direction] += count),
          onEnded,
        });
      },
      failed(error) {
        failures.push(error);
        owner.instead?.(session);
      },
      ended: onEnded,
    };
    const { destination } = session.metadata;
    const plan = { ip: LOOPBACK_V4, port: destination.port, routingMark: 0, interfaceName: "", probes: null };
    const limited = owner.meter.free !== true;
    worker.dial({ ...plan, timeoutMs: 5_000, isFirstOfMany: false, ...owner.plan }, success, limited, wire);
  };
  const accept = (session: StreamSession): void => {
    sessions.push(session);
    const client = session.offloaded ?? null;
    if (client !== null) kept.push(client);
    if (owner.instead !== null) owner.instead(session);
    else if (client === null) dialHere(session);
    else dial(session, client);
  };
  let stopAccepting = (): Promise<void> => Promise.resolve();
  const env = openInboundEnv({
    dialer: planningDialer,
    accept: (session) => {
      if (session.network === "tcp") accept(session);
      else owner.onFlow?.(session);
    },
  });
  const side = protocol.inbound;
  if (side === undefined) throw new Error(`${protocol.type} has no inbound`);
  const listenTcp: typeof env.listenTcp = async (options) => {
    const onAccepted = (connection: AcceptedConnection): void =>
      options.onAccepted(connection, lease.endpoint);
    const asked = { ip: ANY_V4, port: 0, owner: "test" }; // as listeners are by default
    const lease = opened.use(await pool.leaseTcp(asked, { ...options, probes: null, onAccepted }));
    lease.activate();
    stopAccepting = async () => await lease[Symbol.asyncDispose]();
    return [lease.endpoint];
  };
  const inbound = opened.use(
    (await side.open(side.schema.parse(raw) as never, {
      ...env,
      listenTcp,
      unauthenticated: pool.unauthenticated,
    })) as ManagedInbound,
  );
  opened.use(env);
  const all = opened.move();
  const owner: KeptClients = {
    port: inbound.endpoints[0]?.port ?? 0,
    engine,
    inbound,
    sessions,
    kept,
    ended,
    failures,
    instead: null,
    onFlow: null,
    plan: {},
    stopAccepting: () => stopAccepting(),
    meter: unlimited,
    unauthenticated: pool.unauthenticated,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
  return owner;
}
