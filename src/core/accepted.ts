/** TCP connections that listeners have accepted, whether the event loop or a worker has the socket. */
import type { Duplex } from "node:stream";
import type { DialPlan } from "./dial-plan.ts";
import type { Endpoint, Ip } from "./endpoint.ts";
import type { DialError } from "./errors.ts";
import type { WireStart } from "./wire-state.ts";
import type { RealityRules } from "./reality-rules.ts";
import type { TlsContextSource } from "./tls-contexts.ts";
import type { ClientSession } from "./wire-details.ts";
import type { LetIn } from "./written-users.ts";

/**
 * What a worker can read of a connection by itself to learn the destination: a request; `none`: there is no handshake,
 * the listener knows the destination; `redirected`: the kernel's connection tracking knows it; `transparent`: it is the
 * socket's own address; `first-bytes`: whatever its client says first, which the main thread understands.
 */
export type PlainHandshake =
  | "mixed"
  | "socks"
  | "http"
  | "none"
  | "redirected"
  | "transparent"
  | "first-bytes";

/** What a connection of HTTP/1.1 was switched to: frames of WebSocket, or the bare stream. */
export type Switched = "frames" | "stream";

interface FirstBytes {
  /** Clients ask there for a switch from HTTP/1.1 first, which workers answer. Absent: they do not. */
  readonly upgradePath?: string;
  /** Workers may decide on what users ask for first. Absent: they may not. */
  readonly letIn?: LetIn;
}

/** How the connections of a listener begin. `unknown`: in a way that only the event loop can read. */
export type Handshake =
  | { readonly handshake: "mixed" | "socks" | "http" | "unknown" }
  | ({ readonly handshake: "first-bytes" } & FirstBytes)
  | { readonly handshake: "transparent" }
  | {
      readonly handshake: "none";
      /** The address that all its connections lead to; absent: each leads elsewhere, or to a name. */
      readonly destination?: Endpoint;
    }
  | {
      readonly handshake: "redirected";
      /** Asks the kernel where a connection was going before it was redirected; null: it was not. */
      readonly originalOf: (descriptor: number, client: Ip) => Endpoint | null;
    }
  | {
      /** A handshake of REALITY, behind which workers show what clients say, as of `first-bytes`. */
      readonly handshake: "reality";
      readonly rules: RealityRules;
    }
  | ({
      readonly handshake: "tls";
      readonly contexts: TlsContextSource;
      /** Once the handshake is done, workers show what clients say, as of `first-bytes`. */
      readonly showsFirst?: boolean;
    } & FirstBytes);

/** The receiver owns it: takes its stream, has it dialled by its worker, or ends it. */
export interface AcceptedConnection {
  readonly source: Endpoint;
  /** The listening side's own address for this connection. */
  readonly local: Endpoint;
  /** Where it was going before the kernel redirected it; null: it was not, or the listener is not `redirected`. */
  readonly original: Endpoint | null;
  /**
   * The request as a worker has read it, still unread in the socket; empty where there is no handshake; of `first-bytes` as
   * much as had come. Null: the handshake is still to be read from `stream`.
   */
  readonly request: Buffer | null;
  /** A worker has answered the client's request to switch to that, and taken the request off. Null: none was answered. */
  readonly switched: Switched | null;
  /** The same connection while a worker has the socket and can dial; null: the event loop has it. */
  readonly worker: WorkerConnection | null;
  /** A TLS handshake that a worker has begun; null: TLS, if any, is still to begin on `stream`. */
  readonly tls: OffloadedTls | null;
  /** Records of TLS 1.3 lie over the socket, behind a handshake that a worker has done. Absent: they do not. */
  readonly records?: OffloadedRecords | null;
  /** A worker has found that it is not the listener's client, and is to be connected with that site. Absent: it has not. */
  readonly left?: LeftToDest | null;
  /**
   * Always the same stream, with an 'error' listener, `allowHalfOpen`, and everything that was not part of a greeting
   * still to be read. Takes the socket from a worker, which is done with it: not while it dials, and not after. Without
   * a descriptor left it is destroyed already. Throws where `tls` or `records` is not null.
   */
  stream(): Duplex;
  /** Answers a part of the handshake. What a worker has answered in place of the event loop is not sent again. */
  reply(bytes: Uint8Array): void;
  /** Calls `on` with what the event loop can end, once it has that, and with each that takes its place. */
  follow(on: (one: Followed) => void): void;
  destroy(): void;
  /** Ends it as a fault would. */
  reset(): void;
}

/** A stream, or a session whose frames a worker reads. */
export interface Followed {
  readonly closed: boolean;
  destroy(): void;
  once(event: "close", on: () => void): unknown;
}

/** A connection whose socket a worker has. */
export interface WorkerConnection extends AcceptedConnection {
  /** Called with the end, and with what `dial` comes to. */
  events: DialEvents | null;
  /** Only so many bytes of `request` were the handshake: the rest is read once more, from the socket. */
  understood(bytes: number): void;
  /**
   * Has the worker connect, send `success` to the client, and move the bytes. `limited`: every piece is asked for from
   * the first on. `wire` absent: the client's bytes are the payload.
   */
  dial(plan: DialPlan, success: Uint8Array, limited: boolean, wire?: ClientWire): void;
  /** Of `request`, as far as it was `understood`. */
  readonly handshakeBytes: number;
  /**
   * Has the worker read what follows the handshake as frames of several streams. The connection is the session's from then on:
   * `reset` ends it. `wire`: as of `dial`. False: the worker cannot.
   */
  openSession(session: ClientSession, observer: SessionObserver, wire: ClientWire): boolean;
  /** The near end of the connection that was dialled, as the kernel has it now; null: there is none yet, or any more. */
  dialledFrom(): LocalEnd | null;
}

/** What becomes of a client whose worker reads its frames. */
export interface SessionObserver {
  /** A stream says where it leads to: `request` is that, as the session's protocol has it. */
  onStream(stream: WorkerConnection): void;
  /** Called once: the session is over, and so are its streams. */
  onEnded(): void;
  /** What those who follow the connection are told. Absent: who it belongs to is known, and ends it. */
  readonly followed?: Followed;
}

/** What lies over the socket of a client whose handshake the main thread has read. */
export interface ClientWire {
  /** Another one at each call. */
  begin(): WireStart;
  /** Called where the end has left the socket open: the descriptor is the callee's. Absent: it leaves none. */
  readonly takeBack?: (fd: number) => void;
}

/** Called with the progress of a dial, in this order, each at most once. */
export interface DialEvents {
  /** Connected, and the client has its success reply. Bytes may have moved. */
  dialled(): void;
  /** The client waits to be taken. Null: why, is to be found by dialling from the event loop. */
  failed(error: DialError | null): void;
  /** The client's connection is over and everything of it is freed. */
  ended(): void;
}

/** The near end of what was dialled for a client. */
export interface LocalEnd extends Endpoint {
  /** Of its socket; the worker's. */
  readonly descriptor: number;
}

/** A TLS handshake as a worker leaves it. */
export interface OffloadedTls {
  /** Why it failed; then nothing is left of the connection. Null: it is done, or under way. */
  readonly failure: string | null;
  readonly isDone: boolean;
  /**
   * The library's object, while a worker has the socket of one that is done and waits for an answer: to be looked at.
   * Undefined: it is to be taken, or is another's.
   */
  readonly object?: bigint | undefined;
  /** The descriptor and the library's object, which are the caller's from then on. */
  take(): { readonly fd: number; readonly ssl: bigint };
  /** `stream` has the descriptor from now on; see `follow`. */
  continueBy(stream: Duplex): void;
}

/** Records of TLS 1.3 as a worker leaves them. */
export interface OffloadedRecords {
  /** Which of the listener's names the client has asked for. */
  readonly name: number;
  /** What it has offered: an index in `ALPN_KINDS`. */
  readonly alpn: number;
  /** The caller's from then on; to be called once. */
  take(): TakenRecords;
  /** `stream` has the descriptor from now on; see `follow`. */
  continueBy(stream: Duplex): void;
}

export interface TakenRecords {
  /** -1: nothing is left of the client. */
  readonly fd: number;
  readonly suite: number;
  /** Records so far with the present keys. */
  readonly opened: number;
  readonly sealed: number;
  /** The traffic secrets of opening and sealing. */
  readonly secrets: Uint8Array;
  /** It was opened, and not understood. */
  readonly payload: Buffer;
}

/** The connection of a client of REALITY with dest. */
export interface LeftToDest {
  readonly dest: Duplex;
  /** Still to be said to each, in front of all else. */
  readonly toClient: Buffer;
  readonly toDest: Buffer;
  /** For the log. */
  readonly why: string;
}
