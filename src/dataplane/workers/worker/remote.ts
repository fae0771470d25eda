import type { WireMessage } from "#dataplane/workers/shared/wire-spec.ts";
import type { OpenMessage } from "#dataplane/workers/wire/open-wire.ts";

/** What a pending connection dials: a socket, or a stream of a connection that several share. */
export interface Remote {
  /** What the kernel has said of its socket, epoll(7) bits. */
  events: number;
  /** It was decided by this worker. */
  readonly isDecided: boolean;
  /** Of those that were decided here. */
  readonly isFirstOfMany: boolean;
  /** In ms. */
  readonly timeoutMs: number;
  /** What stands for an errno where it took too long. */
  readonly lateErrno: number;
  /** It has no socket that is to be watched from now on. */
  readonly isAdopted: boolean;
  /** -1: none is open. */
  readonly descriptor: number;
  /** For the client, once it is connected. */
  readonly replyBytes: Uint8Array;
  /** Begins to connect it. Not 0: an errno, or `UNDERLAY_FAILED`; `fail` is to be called. */
  start(): number;
  /** Null: there is no answer yet. 0: connected, and all is open that lies below its wire. Else an errno, or `UNDERLAY_FAILED`. */
  takeResult(): number | null;
  /** What is added to the time that it was given, in ms. */
  takeMoreMs(): number;
  /** It is connected. False: it was decided by rules that are no longer in force, and is to be given up. */
  commit(): boolean;
  /** What its wire is opened by. `planned`: what came with the command. */
  begin(planned: WireMessage): OpenMessage;
  /** From now on the connection is relayed. */
  succeed(): void;
  fail(): void;
  /** Of a connection that ends before it is relayed: what the loop does not free. */
  drop(): void;
}
