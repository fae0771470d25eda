/** What a pending connection has of the acceptor that made it. */
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import type { AcceptMemory } from "#dataplane/workers/shared/accept-memory.ts";
import type { RelayMemory } from "#dataplane/workers/shared/relay-memory.ts";
import type { Decider } from "./decider.ts";
import type { WireMessage } from "#dataplane/workers/shared/wire-spec.ts";
import type { NodeSessions } from "./node-sessions.ts";
import type { AcceptorHost, PendingTask } from "./pending-task.ts";
import type { ClientBytes } from "./client-bytes.ts";
import type { TlsAcceptedQueue } from "./tls-accepted-queue.ts";

/** One that needs a request slot. */
export interface RequestingTask extends PendingTask {
  readonly fd: number;
  /** By SOCKS5. */
  readonly greeted: boolean;
  /** There is a request slot now. */
  askAgain(): void;
}

/** Those of clients that have proved themselves. */
export interface ClientSessions {
  /** In the place of the client, of which the kernel has said `events`. The details of the message say of which protocol. */
  open(client: Pick<RequestingTask, "slot" | "listener">, message: WireMessage, events: number): void;
}

export interface PendingOwner {
  readonly calls: AcceptCalls;
  readonly table: RelayMemory;
  readonly shared: AcceptMemory;
  readonly host: AcceptorHost;
  readonly decider: Decider;
  readonly sessions: NodeSessions;
  /** Those of clients. */
  readonly kept: ClientSessions;
  /** Clients whose TLS handshake is done. */
  readonly tlsAccepted: TlsAcceptedQueue;
  /**
   * What the client says behind its handshake goes to the main thread, by another task in the same slot. The kernel has said
   * `events` of it.
   */
  showFirst(task: PendingTask & { readonly fd: number }, bytes: ClientBytes, events: number): void;
  /** A client of whom nothing was read goes to the main thread. */
  giveBack(task: PendingTask & { readonly fd: number }): void;
  /** The request of a client to switch was answered: what it says next is waited for as what others say first. */
  onSwitched(task: PendingTask): void;
  /** The task holds so many bytes more. */
  grew(task: PendingTask, bytes: number): void;
  /** The listening side's own address for a client; to be used at once. */
  localOf(listener: number, fd: number): Uint8Array;
  /** The address of a listener. */
  nameOf(listener: number): Uint8Array;
  /** -1: there is none now; `askAgain` is called when there is. */
  takeRequestSlot(task: RequestingTask): number;
  freeRequestSlot(slot: number): void;
  /** The main thread decides about it from now on. */
  onAsked(task: RequestingTask): void;
  onDialling(task: RequestingTask, timeoutMs: number): void;
  onDialled(task: RequestingTask): void;
  /** For what is no client; -1: there is none. */
  takeSlot(): number;
  /** For a client that was never reported to the main thread, or that it has taken. */
  freeSlot(slot: number): void;
  onGone(task: PendingTask): void;
}
