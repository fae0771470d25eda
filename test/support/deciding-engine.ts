/** Workers that decide by what a test publishes, behind one listener, and everything that is reported of them. */
import type { Duplex } from "node:stream";
import type { Handshake, WorkerConnection } from "#core/accepted.ts";
import type { NodeTemplate } from "#core/dial-plan.ts";
import type { Endpoint } from "#core/session.ts";
import type { DecidedConnection, DecisionVersion, FoundDial } from "#dataplane/decision-source.ts";
import { openWorkerBackend, type WorkerBackend } from "#dataplane/workers/main/worker-backend.ts";
import { LOOPBACK_V4 } from "#net/address/ip.ts";
import type { ListenAsk } from "#net/listen/listen-ask.ts";
import { SocketPool } from "#net/listen/socket-pool.ts";
import type { DecisionTables } from "#router/tables/decision-tables.ts";
import type { Condition } from "#core/condition.ts";
import { byWorkers } from "./accepted.ts";
import { decisionData, PLAIN_WAY } from "./decision-data.ts";
import { tlsLibrary } from "./tls.ts";

export interface Served extends DecidedConnection {
  /** Counts from 1, as the versions were published. */
  readonly version: number;
  readonly uploadBytes: number;
  readonly downloadBytes: number;
}

export interface JoinedConnection extends DecidedConnection {
  readonly version: number;
  readonly worker: WorkerConnection;
}

export class DecidingEngine implements AsyncDisposable {
  readonly asked: WorkerConnection[] = [];
  /** Those that workers have given up before they asked; they are destroyed. */
  handedOver = 0;
  readonly served: Served[] = [];
  readonly joined: JoinedConnection[] = [];
  /** Joined ones that have ended. */
  ended = 0;
  deaths = 0;
  /** Versions that workers have given up. */
  readonly dropped: number[] = [];
  /** What is decided by from the next publication on; null: everything is asked. */
  rules: readonly Condition[] | null = [{ is: "always" }];
  version = 0;
  isHeld = false;
  captures = false;
  routingMark = 0;
  ownPorts: ReadonlySet<number> = new Set();
  /** What workers know of names, by a resolver with the number 1 that looks up IPv4 alone; null: nothing. */
  names: SharedArrayBuffer | null = null;
  /** What everything leads through; null: nothing. */
  node: NodeTemplate | null = null;
  /** What becomes of one that is asked for. */
  answer: (client: WorkerConnection) => void = (client) => client.reset();
  readonly port: number;
  readonly #engine: WorkerBackend;
  readonly #owned: AsyncDisposableStack;

  private constructor(engine: WorkerBackend, port: number, owned: AsyncDisposableStack) {
    this.#engine = engine;
    this.port = port;
    this.#owned = owned;
  }

  /** The listener is mixed, or a tunnel to `destination`; null: to a name. */
  static open(threads: number, destination?: Endpoint | null): Promise<DecidingEngine> {
    const handshake: Handshake =
      destination === undefined
        ? { handshake: "mixed" }
        : { handshake: "none", ...(destination && { destination }) };
    return DecidingEngine.openFor(threads, handshake);
  }

  /** The listener's clients show first what they are, as `handshake` says. */
  static openFor(threads: number, handshake: Handshake): Promise<DecidingEngine> {
    return DecidingEngine.openAt(threads, handshake, { ip: LOOPBACK_V4, port: 0, owner: "test" });
  }

  static async openAt(threads: number, handshake: Handshake, where: ListenAsk): Promise<DecidingEngine> {
    await using opened = new AsyncDisposableStack();
    let made: DecidingEngine | null = null;
    const onDeath = (): void => void (made === null ? 0 : made.deaths++);
    const engine = opened.use(await openWorkerBackend({ tlsLibrary, threads, onDeath }));
    const pool = new SocketPool();
    const context = { name: "in", ruleList: null, target: null };
    const on = (client: WorkerConnection): void => {
      made?.asked.push(client);
      made?.answer(client);
    };
    const onStream = (stream: Duplex): void => {
      if (made !== null) made.handedOver++;
      stream.destroy();
    };
    const { probes, onAccepted } = byWorkers(on, onStream);
    const options = { ...handshake, probes, onAccepted, context };
    const lease = opened.use(await pool.leaseTcp(where, options));
    made = new DecidingEngine(engine, lease.endpoint.port, opened.move());
    engine.decideBy({ take: () => made?.take() ?? null, isHeld: () => made?.isHeld === true });
    pool.useThreads(engine.accepting);
    lease.activate();
    return made;
  }

  take(): DecisionVersion | null {
    const { rules } = this;
    if (rules === null) return null;
    const version = ++this.version;
    const { version: _, listeners: __, ...tables } = decisionData(1, rules);
    return {
      tables: { ...tables, ...this.#ofNames(), ownPorts: this.ownPorts, captures: this.captures },
      isCurrent: true,
      isDirect: () => true,
      factsOf: ({ name }) => ({ name, root: -1, fixed: null }),
      served: (connection, uploadBytes, downloadBytes) =>
        void this.served.push({ ...connection, version, uploadBytes, downloadBytes }),
      joined: (connection, worker, onEnd) => {
        this.joined.push({ ...connection, version, worker });
        const ended = (): void => {
          this.ended++;
          onEnd();
        };
        worker.events = { dialled() {}, failed() {}, ended };
      },
      [Symbol.dispose]: () => void this.dropped.push(version),
    };
  }

  #ofNames(): Pick<DecisionTables, "names" | "ways"> {
    const { routingMark } = this;
    const choice = { number: 1, ipv6: false, family: null, prefersV6: false };
    const node = this.node === null ? {} : { node: this.node };
    const ways = [null, { ...PLAIN_WAY, routingMark, names: { ...choice, timeoutMs: 250 }, ...node }];
    return { ways, names: this.names && { known: this.names, forRules: choice } };
  }

  /** Others from now on; with `keepsRules` workers are told that rules are what they were. */
  change(rules: readonly Condition[] | null, keepsRules = false): void {
    this.rules = rules;
    this.#engine.invalidateDecisions(keepsRules);
  }

  /** Decisions are held back, or no longer. */
  hold(isHeld: boolean): void {
    this.isHeld = isHeld;
    this.#engine.holdDecisions();
  }

  find(near: Endpoint, to: Endpoint): FoundDial | null {
    return this.#engine.findDecided(near, to);
  }

  join(): void {
    this.#engine.joinDecided();
  }

  stop(): void {
    this.#engine.stopDeciding();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#owned.disposeAsync();
  }
}
