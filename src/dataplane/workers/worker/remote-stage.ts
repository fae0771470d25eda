/** What is opened on the way to the server of a node, before the wire of the node's protocol begins. */
import type { DetachedState } from "#core/wire-state.ts";
import type { OpenMessage } from "#dataplane/workers/wire/open-wire.ts";

/** In one go: a chain with ML-DSA keys is not longer, nor is the head of an answer. */
export const READ_BYTES = 32 * 1024;

/** By what the wire is opened that it becomes. */
export type StageState = Pick<DetachedState, "numbers" | "unread"> & Pick<OpenMessage, "onTicket">;

export interface RemoteStage {
  /**
   * Before the thread reads another command: from here on what the recipe names is kept alive. False: this thread cannot do it.
   */
  open(fd: number): boolean;
  /** Once the socket is connected. Null: the server has not said all yet. 0: it is open. Else `UNDERLAY_FAILED`. */
  advance(): number | null;
  /** Behind the 0: all of it goes out at once. False: it does not. */
  say(bytes: Uint8Array): boolean;
  /** Null: there is nothing more yet. Empty: there never will be. */
  hear(): Buffer | null;
  /** Its state can be taken now. */
  readonly canTake: boolean;
  take(): StageState;
  /** The wire is made. */
  settle(): void;
  /** It comes to nothing. */
  free(): void;
}
