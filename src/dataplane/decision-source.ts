/** How workers come to decide connections by themselves, and what the main thread is told of them. */
import type { WorkerConnection } from "#core/accepted.ts";
import type { AddressOrigin } from "#core/dial-plan.ts";
import type { Endpoint, Ip, Metadata } from "#core/session.ts";
import type { ListenerContext } from "#net/listen/accept.ts";
import type { FoundRule } from "#router/tables/decide.ts";
import type { DecisionTables, ListenerFacts } from "#router/tables/decision-tables.ts";

/** A connection that a worker has decided and dialled. */
export interface DecidedConnection {
  readonly found: FoundRule;
  readonly metadata: Metadata;
  /** The address of its destination; where a node was dialled for a name, and no rule asked for it, none. */
  readonly ip: Ip;
  /** Where that is from, if the client has asked for a name. */
  readonly ipFrom: AddressOrigin;
  /** The name that the fake address stands for which its client has asked for; null: it was none. */
  readonly faked: string | null;
  /** What was dialled: that, or the server of a node. */
  readonly dialled: Endpoint;
}

/** One that a thread dials or has dialled, found by both of its ends. */
export interface FoundDial {
  /** The thread's. */
  readonly descriptor: number;
  /** By DIRECT, and not to the server of a node. */
  readonly isDirect: boolean;
  /** Of the client for whom it is; null: what it was decided by has gone, and it is about to be given up. */
  readonly metadata: Metadata | null;
}

/** What is decided by from one change of rules, lists, choices, limits or listeners to the next. Disposed of when no worker has it any more. */
export interface DecisionVersion extends Disposable {
  /** Null: its connections are decided by the main thread. */
  factsOf(listener: ListenerContext): ListenerFacts | null;
  /** To be asked for after the facts of all listeners. */
  readonly tables: DecisionTables;
  /** Does the rule lead to DIRECT? */
  isDirect(found: FoundRule): boolean;
  /** False: groups pick others than they did. */
  readonly isCurrent: boolean;
  /** One has come and gone; so many bytes were handed on. */
  served(connection: DecidedConnection, uploadBytes: number, downloadBytes: number): void;
  /** One is still there, and is like any other from now on. `onEnd` is to be called when it is over. */
  joined(connection: DecidedConnection, worker: WorkerConnection, onEnd: () => void): void;
}

export interface DecisionSource {
  /** Null: at present every connection is decided by the main thread. */
  take(): DecisionVersion | null;
  /** For the moment every connection has to be looked at by the main thread, by whatever version. Cheap. */
  isHeld(): boolean;
}
