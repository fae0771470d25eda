/** Users of the file, by what stands for each on the wire: threads know them without the main thread. */
export interface WrittenUsers {
  /** As `protocols/begin-wire.ts` has it. */
  readonly protocol: string;
  /** What they speak: API spelling, as in `InboundInfo.type`. */
  readonly type: string;
  /** As latin1, by index. */
  readonly keys: readonly string[];
  /** Of the same users. */
  readonly names: readonly string[];
}

/** More of them would be copied to every thread with each version of what is decided by: they are for the main thread. */
export const MOST_WRITTEN_USERS = 1_000;

/** How a listener has workers let its users in. */
export interface LetIn {
  /** Asked for again when what is decided by has changed. Null: the main thread has to know each at once. */
  users(): WrittenUsers | null;
  /** A worker has let that user in; `end` ends the connection. To be disposed of when it is over. */
  hold(user: string, end: () => void): Disposable;
}
