import type { KeptClientStream } from "#dataplane/workers/wire/kept-client.ts";

/** What a client says before it is relayed. */
export interface ClientBytes {
  /** It is one of a session, and has no socket of its own. Null: it is not. */
  readonly stream: KeptClientStream | null;
  /** Nothing is added to what was looked at before that was consumed. */
  readonly comesWhole: boolean;
  /** Into `AcceptCalls.bytes`, where they stay to be looked at again; as `AcceptCalls.look`. */
  look(): number;
  /** Takes bytes away that were looked at; what it answers is how many. */
  consume(size: number): number;
  /** As `AcceptCalls.say`. */
  say(bytes: Uint8Array): number;
  /**
   * Makes what there is ready for the main thread, and answers with the event that tells it. `TLS_ACCEPTED`: nothing of
   * the client is this thread's any more but the slot.
   */
  depart(): number;
  /** What there is besides the socket, of a client that the main thread does not know. */
  free(): void;
}
