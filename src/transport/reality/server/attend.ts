import type { Tap, TapReader } from "./tap.ts";
import { ANSWER_TIMEOUT_MS, type Visit } from "./visit.ts";

/** A client and dest, while it is open which of the two the other one speaks with. */
interface Ends {
  readonly client: Tap;
  readonly dest: Tap;
}

/** Until the visit is over. Neither end is read behind it. */
export function attend(visit: Visit, { client, dest }: Ends): Promise<void> {
  return new Promise((resolve) => {
    let timer: NodeJS.Timeout | undefined;
    let isSettled = false;
    const look = (): void => {
      if (isSettled) return;
      if (visit.stage === "waits") timer ??= setTimeout(end, ANSWER_TIMEOUT_MS);
      else if (visit.stage !== "hears") clearTimeout(timer);
      if (visit.isFull) dest.stream.pause();
      if (!visit.isOver) return;
      isSettled = true;
      client.leave();
      dest.leave();
      resolve();
    };
    const end = (): void => {
      visit.leave();
      look();
    };
    const reader = (take: (bytes: Buffer) => void): TapReader => ({
      data(bytes) {
        take(bytes);
        look();
      },
      end,
      close: end,
    });
    dest.read(reader((bytes) => visit.fromDest(bytes)));
    if (!isSettled) client.read(reader((bytes) => visit.fromClient(bytes)));
  });
}
