/** A moment as lines of text that fit a terminal. */
import { pageWords } from "#pages/words.ts";
import { cells, fitted } from "./cells.ts";
import type { ConnectionRow, PolicyRow, Row, Sample } from "./sample.ts";

const { bytes: bytesText } = pageWords("en");

export const VIEWS = ["all", "connections", "users", "policies"] as const;
export type View = (typeof VIEWS)[number];

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  readonly view: View;
  readonly isPaused: boolean;
  /** Where it is asked, for the head line. */
  readonly title: string;
}

export interface Line {
  readonly text: string;
  readonly style: "plain" | "head" | "alarm";
}

const LEAST_COLUMNS = 40;
const RATE = 12;
const COUNT = 6;

/** At most as many lines as the terminal has, none wider than it. */
export function linesOf(sample: Sample, screen: Screen): readonly Line[] {
  const columns = Math.max(LEAST_COLUMNS, screen.columns);
  const { total, memory } = sample;
  const head: Line = {
    style: "head",
    text: row(
      [`weir ${screen.title}${screen.isPaused ? " (paused)" : ""}`],
      [`${total.connections} connections`, bytesText(memory)],
      columns,
    ),
  };
  const rates = row(
    [`up ${rateText(total.upRate)}`, `down ${rateText(total.downRate)}`],
    [`sent ${bytesText(total.up)}`, `received ${bytesText(total.down)}`],
    columns,
  );
  const body = sectionsOf(sample, screen.view).filter((section) => section !== null);
  const room = Math.max(0, screen.rows - 3);
  const shares = sharesOf(body, room);
  const lines = body.flatMap((section, at) => section.lines(columns, shares[at] ?? 0));
  const all: Line[] = [head, { text: rates, style: "plain" }, ...lines.slice(0, room)];
  return all.slice(0, screen.rows).map(({ text, style }) => ({ text: fitted(text, columns), style }));
}

export const HELP = "q quit  tab next view  space pause";

interface Section {
  readonly wanted: number;
  lines(columns: number, room: number): readonly Line[];
}

function sectionsOf({ policies, users, connections, atMs }: Sample, view: View): readonly (Section | null)[] {
  const shows = (one: View): boolean => view === "all" || view === one;
  const none = policies === null || policies.length === 0;
  return [
    shows("policies") && !(none && view === "all") ? section("POLICY", policies ?? [], policyLine) : null,
    shows("users") ? section("USER OR SOURCE", users, userLine) : null,
    shows("connections")
      ? section("CONNECTION", connections, (one, columns) => connectionLine(one, columns, atMs))
      : null,
  ];
}

/** Each gets what it wants, while the others want less than their part. */
function sharesOf(sections: readonly Section[], room: number): readonly number[] {
  const shares = sections.map(() => 0);
  let left = room;
  for (let round = 0; round < sections.length && left > 0; round++) {
    const open = sections.flatMap((one, at) => ((shares[at] ?? 0) < one.wanted ? [at] : []));
    const part = Math.floor(left / Math.max(1, open.length));
    for (const at of open) {
      const more = Math.min(part, (sections[at]?.wanted ?? 0) - (shares[at] ?? 0));
      shares[at] = (shares[at] ?? 0) + more;
      left -= more;
    }
  }
  return shares;
}

/** The busiest ones first; what has no room is counted. */
function section<T extends Row>(
  title: string,
  rows: readonly T[],
  lineOf: (one: T, columns: number) => Line,
): Section {
  return {
    wanted: Math.max(rows.length, 1) + 1,
    lines(columns, room) {
      if (room < 2) return [];
      const sorted = rows.toSorted(busier);
      const fits = sorted.length <= room - 1;
      const shown = fits ? sorted : sorted.slice(0, room - 2);
      const head = row([title], [right("CONN", COUNT), right("UP/s", RATE), right("DOWN/s", RATE)], columns);
      const more: Line[] = fits ? [] : [{ text: `… ${sorted.length - shown.length} more`, style: "plain" }];
      const empty: Line[] = rows.length === 0 ? [{ text: "none", style: "plain" }] : [];
      return [{ text: head, style: "head" }, ...shown.map((one) => lineOf(one, columns)), ...more, ...empty];
    },
  };
}

function busier(a: Row, b: Row): number {
  return (
    b.upRate + b.downRate - a.upRate - a.downRate || b.up + b.down - a.up - a.down || (a.key < b.key ? -1 : 1)
  );
}

const ratesOf = ({ connections, upRate, downRate }: Row): readonly string[] => [
  right(`${connections}`, COUNT),
  right(rateText(upRate), RATE),
  right(rateText(downRate), RATE),
];

function policyLine(policy: PolicyRow, columns: number): Line {
  const limits = [policy.upLimit, policy.downLimit].map((limit) =>
    limit === 0 ? "-" : `${bitsText(limit)}`,
  );
  const limit = policy.upLimit + policy.downLimit === 0 ? "" : ` (limit ${limits.join("/")})`;
  const over = policy.isOver ? " OVER QUOTA" : "";
  const text = row([`${policy.kind} ${policy.label}${limit}${over}`], ratesOf(policy), columns);
  return { text, style: policy.isOver ? "alarm" : "plain" };
}

function userLine(user: Row, columns: number): Line {
  return { text: row([user.label], ratesOf(user), columns), style: "plain" };
}

function connectionLine(one: ConnectionRow, columns: number, atMs: number): Line {
  const left = `${one.label} ${one.way === "" ? "" : `→ ${one.way} `}${one.source}`;
  const [, ...rates] = ratesOf(one);
  return {
    text: row([left], [right(ageText(atMs - one.startedAtMs), COUNT), ...rates], columns),
    style: "plain",
  };
}

/** What is left gives way to what is right. */
function row(left: readonly string[], rightParts: readonly string[], columns: number): string {
  const tail = rightParts.join(" ");
  const room = Math.max(0, columns - cells(tail) - 1);
  const start = fitted(left.join("  "), room);
  return `${start}${" ".repeat(Math.max(1, columns - cells(start) - cells(tail)))}${tail}`;
}

const right = (text: string, width: number): string => text.padStart(width);

export function rateText(bytesPerSecond: number): string {
  return bytesPerSecond < 1 ? "0 B" : bytesText(Math.round(bytesPerSecond));
}

function bitsText(bits: number): string {
  return bits < 1e6 ? `${+(bits / 1e3).toFixed(1)}k` : `${+(bits / 1e6).toFixed(1)}M`;
}

function ageText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 100) return `${seconds}s`;
  if (seconds < 6000) return `${Math.floor(seconds / 60)}m`;
  return seconds < 360_000 ? `${Math.floor(seconds / 3600)}h` : `${Math.floor(seconds / 86_400)}d`;
}
