/** Numbers and times as people read them. */

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** `1.5 MiB`; three significant digits at most. */
export function bytesText(bytes: number): string {
  let value = Math.max(0, bytes);
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${digits(value, unit === 0)} ${UNITS[unit]}`;
}

function digits(value: number, whole: boolean): string {
  if (whole || value >= 100) return value.toFixed(0);
  return value.toFixed(value >= 10 ? 1 : 2);
}

export const rateText = (bytesPerSecond: number): string => `${bytesText(bytesPerSecond)}/s`;

export const countText = (count: number): string => count.toLocaleString("en");

/** `1 user`, `2,000 users`. */
export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${countText(count)} ${count === 1 ? one : many}`;

/** `42 s`, `3 min`, `2 h 5 min`, `4 d 1 h`. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return pair(hours, "h", minutes % 60, "min");
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

function pair(major: number, unit: string, minor: number, smaller: string): string {
  return minor === 0 ? `${major} ${unit}` : `${major} ${unit} ${minor} ${smaller}`;
}

/** `never` for the epoch and for the zero time, which mean just that. */
export function agoText(time: string | undefined, nowMs: number): string {
  const atMs = time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(atMs) || atMs <= 0 ? "never" : `${durationText(nowMs - atMs)} ago`;
}

/** With brackets around an IPv6 address. */
export const hostPort = (host: string, port: string): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
