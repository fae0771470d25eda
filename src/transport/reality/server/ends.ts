/** A client and dest, while it is open which of the two the other one speaks with. */
import type { Tap } from "./tap.ts";

export interface Ends {
  readonly client: Tap;
  readonly dest: Tap;
}

/** The first result, which is made once; `closed` makes it where an end closes before. Both ends are paused behind it. */
export function untilSettled<Result>(
  { client, dest }: Ends,
  closed: () => Result,
  start: (settle: (make: () => Result) => void) => (() => void) | void,
): Promise<Result> {
  return new Promise((resolve) => {
    let isSettled = false;
    let stop = (): void => {};
    const settle = (make: () => Result): void => {
      if (isSettled) return;
      isSettled = true;
      stop();
      for (const { stream } of [client, dest]) stream.off("close", onClose).pause();
      resolve(make());
    };
    const onClose = (): void => settle(closed);
    for (const { stream } of [client, dest]) stream.on("close", onClose);
    stop = start(settle) ?? stop;
    if (isSettled) stop();
    if (client.stream.destroyed || dest.stream.destroyed) onClose();
  });
}
