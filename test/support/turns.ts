/** How often the event loop turns while `work` is under way: hardly at all where it is done in one go. */
export async function turnsDuring<T>(work: () => T | Promise<T>): Promise<[result: T, turns: number]> {
  let turns = 0;
  let next = setImmediate(function turn() {
    turns++;
    next = setImmediate(turn);
  });
  try {
    return [await work(), turns];
  } finally {
    clearImmediate(next);
  }
}
