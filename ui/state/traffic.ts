/** Throughput of the last minutes and totals, watched for as long as the page is open. */
import type { Link } from "#ui/api/link.ts";
import { openStream } from "#ui/api/stream.ts";
import type { Traffic } from "#ui/api/types.ts";
import { Store } from "./store.ts";

/** What is shown of the past. */
export const SPAN_SECONDS = 300;
/** One a second; older ones are dropped. */
const MAX_SAMPLES = SPAN_SECONDS;

export interface TrafficState {
  readonly now: Traffic | null;
  /** Parallel lists, the newest last: Unix seconds, bytes per second. */
  readonly times: readonly number[];
  readonly up: readonly number[];
  readonly down: readonly number[];
}

export class TrafficWatch {
  readonly traffic = new Store<TrafficState>({ now: null, times: [], up: [], down: [] });
  readonly memoryBytes = new Store<number | null>(null);

  constructor(link: Link) {
    openStream<Traffic>(link, "traffic", (now) => {
      const { times, up, down } = this.traffic.value;
      this.traffic.set({
        now,
        times: [...times, Date.now() / 1000].slice(-MAX_SAMPLES),
        up: [...up, now.up].slice(-MAX_SAMPLES),
        down: [...down, now.down].slice(-MAX_SAMPLES),
      });
    });
    openStream<{ inuse: number }>(link, "memory", ({ inuse }) => {
      if (inuse > 0) this.memoryBytes.set(inuse); // the first record of a stream always says 0
    });
  }
}
