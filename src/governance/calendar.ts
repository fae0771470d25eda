/** Where hours, days and months begin, in UTC or in a time zone. Unix seconds throughout. */
export type Granularity = "hour" | "day" | "month";

export const HOUR_SECONDS = 3600;

export function hourStart(atSeconds: number): number {
  return Math.floor(atSeconds / HOUR_SECONDS) * HOUR_SECONDS;
}

/** An hour that a zone's midnight cuts in two belongs to the day in which it begins. */
export interface Calendar {
  dayStart(atSeconds: number): number;
  monthStart(atSeconds: number): number;
}

const UTC: Calendar = {
  dayStart: (at) => Math.floor(at / 86_400) * 86_400,
  monthStart(at) {
    const date = new Date(at * 1000);
    return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1) / 1000;
  },
};

/** At this many remembered hours the memory starts anew: more than a report's longest range of a year. */
const MOST_REMEMBERED = 20_000;

/** Null: UTC. */
export function openCalendar(timeZone: string | null): Calendar {
  if (timeZone === null || timeZone === "UTC") return UTC;
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  const local = (at: number): readonly [year: number, month: number, day: number, offset: number] => {
    const part = Object.fromEntries(format.formatToParts(at * 1000).map(({ type, value }) => [type, +value]));
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
    return [year, month, day, Date.UTC(year, month - 1, day, hour, minute, second) / 1000 - at];
  };
  /** The instant at which the zone's clocks show this midnight; where they skip it, the first instant after. */
  const midnight = (year: number, month: number, day: number): number => {
    const wanted = Date.UTC(year, month - 1, day) / 1000;
    const candidates = [wanted - 86_400, wanted + 86_400].map((near) => wanted - local(near)[3]);
    const exact = candidates.filter((at) => at + local(at)[3] === wanted);
    return exact.length > 0 ? Math.min(...exact) : Math.max(...candidates);
  };
  const remembered = (of: (at: number) => number) => {
    const known = new Map<number, number>();
    return (at: number): number => {
      const hour = hourStart(at);
      let start = known.get(hour);
      if (start === undefined) {
        start = of(hour);
        if (known.size >= MOST_REMEMBERED) known.clear();
        known.set(hour, start);
      }
      return start;
    };
  };
  return {
    dayStart: remembered((at) => midnight(local(at)[0], local(at)[1], local(at)[2])),
    monthStart: remembered((at) => midnight(local(at)[0], local(at)[1], 1)),
  };
}
