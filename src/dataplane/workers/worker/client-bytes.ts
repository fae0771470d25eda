import type { KeptClientStream } from "#dataplane/workers/wire/kept-client.ts";
import type { OpenMessage } from "#dataplane/workers/wire/open-wire.ts";

/** In place of what was looked at: there is something that the event loop has to read. No errno. */
export const FOR_MAIN = -10_021;

/** What a client says before it is relayed. */
export interface ClientBytes {
  /** It is one of a session, and has no socket of its own. Null: it is not. */
  readonly stream: KeptClientStream | null;
  /** Nothing is added to what was looked at before that was consumed. */
  readonly comesWhole: boolean;
  /** Into `AcceptCalls.bytes`, where they stay to be looked at again; as `AcceptCalls.look`, or `FOR_MAIN`. */
  look(): number;
  /** Takes bytes away that were looked at; what it answers is how many. */
  consume(size: number): number;
  /** What lies over the socket, in place of what came with the command, where it was begun here. */
  begin?(planned: OpenMessage): OpenMessage;
  /** As `AcceptCalls.say`. */
  say(bytes: Uint8Array): number;
  /**
   * Makes what there is ready for the main thread, and answers with the event that tells it. Another one than `HANDED_OVER`:
   * nothing of the client is this thread's any more but the slot.
   */
  depart(): number;
  /** What there is besides the socket, of a client that the main thread does not know. */
  free(): void;
  /** The client has another owner, or none any more: what is kept of it here is freed. Absent: nothing is. */
  dispose?(): void;
}
