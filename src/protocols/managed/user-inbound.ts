/** What listeners with users have in common: the table in force, admission by it, and the end of removed users' sessions. */
import { AuthError, ConfigError, messageOf, ProtocolError } from "#core/errors.ts";
import type { AcceptedConnection, Handshake } from "#core/accepted.ts";
import { type LetIn, MOST_WRITTEN_USERS, type WrittenUsers } from "#core/written-users.ts";
import type { InboundEnv, ManagedInbound, User, UsersChange } from "#core/inbound.ts";
import type { Endpoint } from "#core/session.ts";
import { type ConnectionEnds, guardErrors } from "#net/listen/accept.ts";
import { readAll } from "#net/listen/first-bytes.ts";
import { discardInput } from "#net/listen/read-handshake.ts";
import { LiveUsers } from "#protocols/live-users.ts";
import { HTTP3_ALPN } from "#transport/http3/alpn.ts";
import { QuicPorts } from "#transport/quic/server/port.ts";
import type { Secured } from "#transport/security.ts";
import type { TransportServer } from "#transport/server.ts";
import type { QuicCarrier } from "#transport/xhttp/http3-server.ts";
import { AuthenticatedConnection } from "./authenticated-connection.ts";
import { UserList } from "./user-list.ts";

/** Users as a protocol looks them up. Immutable: other users are another table. */
export interface UserTable {
  /** A text a user. Where it differs in the next table, or is missing, what the user has open ends. */
  readonly identities: ReadonlyMap<string, string>;
}

export interface ShellOptions<Table> {
  /** API spelling. */
  readonly type: string;
  readonly users: Table;
  /** The users that `users` was made of. */
  readonly written: readonly User[];
  /** Throws `ConfigError`. */
  readonly tableOf: (users: readonly User[]) => Table;
  /** Makes the table of `tableOf` out of the one in force, at the cost of what changes: there may be thousands of users. */
  readonly changeTable?: (table: Table, change: UsersChange) => Table;
  /** The users of a table whose requests threads understand, too; absent: of none. */
  readonly writtenUsers?: (table: Table) => Omit<WrittenUsers, "type">;
}

export interface ListenOptions {
  /** False: refuses to open where nothing hides the traffic. */
  readonly mayBeBare: boolean;
  /** How long a peer is read in silence after its handshake failed; null: it is disconnected at once. */
  readonly silenceMs: number | null;
  /** `authenticate` reads by `readFirst` what one client says at once: workers keep the sockets meanwhile, over TCP and over TLS. */
  readonly readsFirst?: boolean;
  /** Owns the stream, which has an 'error' handler; what it throws, or rejects with, ends the connection. */
  readonly authenticate: (carried: Secured, ends: ConnectionEnds) => void | Promise<void>;
}

export class UserInbound<Table extends UserTable> {
  readonly #env: InboundEnv;
  readonly #options: ShellOptions<Table>;
  readonly #live = new LiveUsers();
  #users: Table;
  /** Null until users were handed in: those of the file are in no list. */
  #list: UserList | null = null;

  readonly #letIn: LetIn = {
    users: () => {
      const { type, writtenUsers, written } = this.#options;
      // Users that come and go have counters and limits, which the main thread keeps.
      const isFew = this.#list === null && written.length > 0 && written.length <= MOST_WRITTEN_USERS;
      return isFew && writtenUsers !== undefined ? { type, ...writtenUsers(this.#users) } : null;
    },
    hold: (user, end) => {
      if (!this.#users.identities.has(user)) end(); // removed meanwhile
      return this.#live.add(user, end);
    },
  };

  constructor(env: InboundEnv, options: ShellOptions<Table>) {
    this.#env = env;
    this.#options = options;
    this.#users = options.users;
  }

  /** A handshake keeps the table that it began with, and hands it to `admit`. */
  get users(): Table {
    return this.#users;
  }

  /** Takes the layer over. Throws `ConfigError`; the layer is disposed of then. */
  async listen(layer: TransportServer, options: ListenOptions): Promise<ManagedInbound> {
    using undo = new DisposableStack();
    undo.use(layer);
    const { type } = this.#options;
    const { name } = this.#env;
    if (layer.security === "none" && !options.mayBeBare)
      throw new ConfigError(
        `listener ${name}: ${type.toLowerCase()} hides nothing by itself: set certificate and private-key, or allow-insecure: true`,
      );
    const endpoints = [
      ...(layer.isOverTcp ? await this.#listenTcp(layer, options) : []),
      ...(layer.quic === null ? [] : await this.#listenUdp(layer.quic, options)),
    ];
    return this.open(endpoints, undo.move());
  }

  #listenTcp(layer: TransportServer, options: ListenOptions): Promise<readonly Endpoint[]> {
    const onAccepted = (connection: AcceptedConnection): void => this.#serve(connection, layer, options);
    const handshake = handshakeOf(layer, options.readsFirst === true, this.#letIn);
    return this.#env.listenTcp({ ...handshake, onAccepted });
  }

  #listenUdp(carrier: QuicCarrier, options: ListenOptions): Promise<readonly Endpoint[]> {
    const ports = this.#env.memory?.of(QuicPorts) ?? new QuicPorts();
    const quic = carrier.options((client, stream, onAuthenticated) => {
      const ends = {
        get source() {
          return client.peer;
        },
        local: client.local,
      };
      const carried = { stream, alpn: HTTP3_ALPN, serverName: null, bypass: null, onAuthenticated };
      this.#authenticate(carried, ends, undefined, options);
    });
    return this.#env.listenUdp((socket) => void ports.open(socket, quic));
  }

  /** The listener, for protocols that listen by themselves. It ends with `life`. */
  open(endpoints: readonly Endpoint[], life: Disposable): ManagedInbound {
    const { type, written } = this.#options;
    const opened: ManagedInbound = {
      name: this.#env.name,
      type,
      endpoints,
      written,
      replaceUsers: (users) => this.#enforce(this.#tableOf(users)),
      changeUsers: (change) => this.#enforce(this.#changedTable(change)),
      [Symbol.asyncDispose]: async () => life[Symbol.dispose](),
    };
    this.#live.owner = opened;
    return opened;
  }

  /**
   * The connection of an authenticated user. `user` null: the listener has one key and no users. Throws `AuthError` where
   * the user was removed, or has other credentials, since `greetedBy` was in force.
   */
  admit(user: string | null, authenticatedBy: Table, ends: ConnectionEnds): AuthenticatedConnection {
    if (user !== null && !isSame(user, authenticatedBy, this.#users))
      throw new AuthError("taken away while it shook hands");
    return new AuthenticatedConnection({
      env: this.#env,
      live: this.#live,
      type: this.#options.type,
      user,
      ends,
    });
  }

  /** The table was made without a throw; from here on it holds. */
  #enforce(next: Table): void {
    const before = this.#users;
    this.#users = next;
    this.#live.retain((user) => isSame(user, before, next));
  }

  #tableOf(users: readonly User[]): Table {
    const { tableOf, changeTable } = this.#options;
    if (changeTable !== undefined && this.#list !== null)
      return this.#changedTable(this.#list.changeTo(users));
    const table = tableOf(users);
    this.#list = new UserList(users);
    return table;
  }

  #changedTable(change: UsersChange): Table {
    const { tableOf, changeTable } = this.#options;
    const list = this.#list ?? new UserList([]);
    const table = changeTable?.(this.#users, change) ?? tableOf(list.after(change));
    list.take(change);
    this.#list = list;
    return table;
  }

  #serve(connection: AcceptedConnection, layer: TransportServer, options: ListenOptions): void {
    const { source, local } = connection;
    const ends = { source, local }; // kept by sessions, which must not keep the socket
    const unknown = this.#env.unauthenticated?.enter(connection, layer.security === "tls") ?? null;
    const onCarried = (carried: Secured): void => {
      // One of many in a connection: taken from its worker it is a client like any other.
      const one = carried.connection === connection ? undefined : carried.connection;
      const unknownOne = one && this.#env.unauthenticated?.enter(one, false);
      const onKnown = (): void => {
        unknown?.leave();
        unknownOne?.leave();
      };
      this.#authenticate(carried, ends, onKnown, options);
    };
    layer.serve(connection, onCarried, unknown);
  }

  #authenticate(
    carried: Secured,
    ends: ConnectionEnds,
    isKnown: (() => void) | undefined,
    { authenticate, silenceMs }: ListenOptions,
  ): void {
    const startedAtMs = performance.now();
    if (carried.connection === undefined) guardErrors(carried.stream); // else its connection has done so
    const refuse = (error: unknown): void => {
      this.#env.log.debug(() => `listener ${this.#env.name}: ${ends.source.ip}: ${messageOf(error)}`);
      readAll(carried);
      if (silenceMs === null || !(error instanceof ProtocolError)) return void carried.stream.destroy();
      // Counted from the start, so that a peer which sends too little is kept no longer than one which sends nonsense.
      discardInput(carried.stream, Math.max(0, silenceMs - (performance.now() - startedAtMs)));
    };
    const onServed = (): void => {
      isKnown?.();
      carried.onAuthenticated?.();
    };
    try {
      const served = authenticate(carried, ends);
      if (served instanceof Promise) served.then(onServed, refuse);
      else onServed();
    } catch (error) {
      refuse(error);
    }
  }
}

/** `readsFirst`: as `ListenOptions` has it. */
function handshakeOf(
  { contexts, isBare, keepsHttp2 = false, rules = null, security, upgradePath }: TransportServer,
  readsFirst: boolean,
  letIn: LetIn,
): Handshake {
  const showsFirst = readsFirst && (isBare || keepsHttp2 || upgradePath !== null);
  const first = { ...(upgradePath !== null && { upgradePath }), ...(isBare && { letIn }) };
  if (contexts !== null) return { handshake: "tls", contexts, showsFirst, ...first };
  if (rules !== null && showsFirst) return { handshake: "reality", rules };
  return showsFirst && security === "none"
    ? { handshake: "first-bytes", ...first }
    : { handshake: "unknown" };
}

function isSame(user: string, before: UserTable, after: UserTable): boolean {
  const identity = before.identities.get(user);
  return identity !== undefined && identity === after.identities.get(user);
}
