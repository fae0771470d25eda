/** A client and dest, while it is open which of the two the other one speaks with. */
import type { Tap, TapReader } from "./tap.ts";

export interface Ends {
  readonly client: Tap;
  readonly dest: Tap;
}

/** Who reads which end. */
export type Readers = Readonly<Record<keyof Ends, TapReader>>;

/** The first result, which is made once; `closed` makes it where an end closes before. Neither end is read behind it. */
export function untilSettled<Result>(
  { client, dest }: Ends,
  closed: () => Result,
  start: (settle: (make: () => Result) => void) => Readers,
  stop: () => void = nothingToStop,
): Promise<Result> {
  return new Promise((resolve) => {
    let isSettled = false;
    const settle = (make: () => Result): void => {
      if (isSettled) return;
      isSettled = true;
      stop();
      client.leave();
      dest.leave();
      resolve(make());
    };
    const close = (): void => settle(closed);
    const readers = start(settle);
    if (!isSettled) dest.read({ ...readers.dest, close });
    if (!isSettled) client.read({ ...readers.client, close });
  });
}

function nothingToStop(): void {}
