/** Speeds of users: of the last day in steps as the program remembers them, and from the counters as they are read. */
import type { ManagedUser, UsageStep, UserUsage } from "#ui/api/admin-types.ts";
import type { PlotData } from "#ui/parts/plot-data.ts";

/** A user; older ones are dropped. */
const MAX_SAMPLES = 180;

interface Sample {
  readonly time: number;
  readonly up: number;
  readonly down: number;
}

interface Track {
  readonly last: ManagedUser;
  readonly time: number;
  readonly samples: readonly Sample[];
}

export class UsageHistory {
  #tracks = new Map<string, Track>();

  read(users: readonly ManagedUser[], nowMs: number): void {
    const time = nowMs / 1000;
    const next = users.map((user): [string, Track] => {
      const before = this.#tracks.get(user.id);
      if (before === undefined) return [user.id, { last: user, time, samples: [] }];
      const seconds = Math.max(0.05, time - before.time);
      // a reset sets the counters back: what was moved since is all there is
      const moved = (now: number, then: number): number => (now < then ? now : now - then) / seconds;
      const sample = {
        time,
        up: moved(user.upload_bytes, before.last.upload_bytes),
        down: moved(user.download_bytes, before.last.download_bytes),
      };
      return [user.id, { last: user, time, samples: withSample(before.samples, sample) }];
    });
    this.#tracks = new Map(next); // removed users are dropped
  }

  of(id: string): PlotData {
    const samples = this.#tracks.get(id)?.samples ?? [];
    return {
      times: samples.map(({ time }) => time),
      up: samples.map(({ up }) => up),
      down: samples.map(({ down }) => down),
    };
  }
}

/** Of thousands of users most are silent: a user without traffic costs nothing. */
function withSample(samples: readonly Sample[], sample: Sample): readonly Sample[] {
  if (samples.length === 0 && sample.up + sample.down === 0) return samples;
  return [...samples, sample].slice(-MAX_SAMPLES);
}

/** What the program remembers, then what was seen since: a step ends where that begins, and silence is nothing. */
export function withPast({ step_seconds: width, steps }: UserUsage, live: PlotData): PlotData {
  const points: Sample[] = [];
  let end = Number.NaN;
  const fall = (): void => void points.push({ time: end, up: 0, down: 0 });
  for (const { start, upload_bytes, download_bytes } of steps) {
    const from = start / 1000;
    const [up, down] = [upload_bytes / width, download_bytes / width];
    if (from !== end) {
      if (points.length > 0) fall();
      points.push({ time: from - 1, up: 0, down: 0 });
    }
    end = from + width;
    points.push({ time: from, up, down }, { time: end - 1, up, down });
  }
  if (points.length > 0) fall();
  const [first = Infinity] = live.times;
  const past = points.filter(({ time }) => time < first);
  return {
    times: [...past.map(({ time }) => time), ...live.times],
    up: [...past.map(({ up }) => up), ...live.up],
    down: [...past.map(({ down }) => down), ...live.down],
  };
}

/** Of days or hours. */
export function historyData(steps: readonly UsageStep[]): PlotData {
  return {
    times: steps.map(({ start }) => start / 1000),
    down: steps.map(({ download_bytes }) => download_bytes),
    up: steps.map(({ upload_bytes }) => upload_bytes),
  };
}
