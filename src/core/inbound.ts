import type { SafeFiles } from "./files.ts";
import type { AcceptedConnection, Handshake } from "./accepted.ts";
import type { HostMemory } from "./host-memory.ts";
import type { Log } from "./log.ts";
import type { Dialer } from "./outbound.ts";
import type { Endpoint, Ip, Session } from "./session.ts";
import type { DatagramListener, TransparentSocket } from "./sockets.ts";
import type { TlsProvider } from "./tls.ts";

/** Takes the session over; never throws. */
export type Accept = (session: Session) => void;

/** An inbound that exists is listening. Disposing it ends listening and leaves accepted sessions alone. */
export interface Inbound extends AsyncDisposable {
  readonly name: string;
  readonly type: string;
  /** Where it listens, with the real port where 0 was asked for. */
  readonly endpoints: readonly Endpoint[];
}

/** A user name with its password, for HTTP and SOCKS. */
export interface Account {
  readonly username: string;
  readonly password: string;
}

/** The access rules of inbounds that carry none of their own. */
export interface Access {
  readonly accounts: readonly Account[];
  /** Is this source exempt from authentication (`skip-auth-prefixes`)? */
  skipsAuthentication(source: Ip): boolean;
  /** May this source connect at all (`lan-allowed-ips`, `lan-disallowed-ips`)? */
  admits(source: Ip): boolean;
  /** Every source may. Absent: some may not. */
  readonly admitsAll?: boolean;
}

/** A listener's connections: how they begin, and who takes them over. */
export type ListenOptions = Handshake & {
  /** The socket accepts what belongs to other addresses (tproxy). */
  readonly transparent?: boolean;
  /** Owns the connection. `listener` is the endpoint that accepted it, which a captured connection does not show. */
  readonly onAccepted: (connection: AcceptedConnection, listener: Endpoint) => void;
};

/**
 * Clients in the event loop that have not authenticated yet. There is room for so many, and for fewer of one source:
 * then the oldest are destroyed.
 */
export interface UnauthenticatedClients {
  /** It leaves when its stream closes, or when it has authenticated. */
  enter(client: Pick<AcceptedConnection, "source" | "follow">, speaksTls: boolean): UnauthenticatedClient;
}

/** One of them. */
export interface UnauthenticatedClient {
  /** It makes us keep so many bytes more; negative: fewer. */
  grow(bytes: number): void;
  /** It has authenticated. Twice is harmless. */
  leave(): void;
}

/** What an inbound is given. */
export interface InboundEnv {
  readonly name: string;
  readonly accept: Accept;
  readonly access: Access;
  /** Absent: there is room for as many as come. */
  readonly unauthenticated?: UnauthenticatedClients;
  /** Absent: what the inbound remembers ends with it. */
  readonly memory?: HostMemory;
  readonly log: Log;
  readonly files: SafeFiles;
  readonly tls: TlsProvider;
  /** Unix time for protocols that compare clocks with their peer: the system's, or better (`ntp`). */
  readonly nowMs: () => number;
  /** DIRECT of the configuration in force at the dial, for the fallback of servers that hide among others. */
  readonly dialer: Dialer;
  /** An outbound or group of the configuration in force at the dial; a name that it has not fails the dial. */
  readonly through: (name: string) => Dialer;
  /** Fields that go into `Metadata.inbound` unchanged. */
  readonly ruleList: string | null;
  readonly target: string | null;
  /** SO_MARK of sockets that the inbound opens towards its clients; 0: none. */
  readonly routingMark: number;
  /**
   * Opens one listening TCP socket per configured endpoint. The sockets belong to the host and survive a reload that
   * asks for the same endpoint. Workers accept where they can read the handshake, else the event loop does.
   */
  listenTcp(options: ListenOptions): Promise<readonly Endpoint[]>;
  /** Opens one UDP socket per configured endpoint. */
  listenUdp(on: (socket: DatagramListener) => void): Promise<readonly Endpoint[]>;
  /** The same for what is on its way to others. Throws `ConfigError` where this system cannot. */
  listenTransparentUdp(on: (socket: TransparentSocket) => void): Promise<readonly Endpoint[]>;
  /**
   * Ends all sessions that users of these names have at this listener, also those whose sockets have another owner by
   * now. Absent: sessions do not outlive their sockets.
   */
  readonly endSessions?: (users: ReadonlySet<string>) => void;
}

export interface User {
  readonly id: string;
  readonly credential: string;
  readonly flow: string | null;
}

/** An inbound whose users change while it runs. All or nothing. */
export interface ManagedInbound extends Inbound {
  /** The users that it was opened with; absent: it does not say. */
  readonly written?: readonly User[];
  replaceUsers(users: readonly User[]): void;
  /**
   * The same as handing over the list with the change in it, without the cost of the list when one of thousands of
   * users changes.
   */
  changeUsers?(change: UsersChange): void;
}

/** How one list of users becomes another. */
export interface UsersChange {
  /** Ids of those that the old list had and the new one has not. */
  readonly gone: readonly string[];
  /** New ones, and others than before under the same id. */
  readonly come: readonly User[];
}
