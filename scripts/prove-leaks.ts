/**
 * `npm run prove:leaks -- [name=count …]`: nothing that a TUN captures leaves past it. `changes=200` of the TUN, `reloads=50`,
 * `restarts=20`, `kills=20` with `gone=60000` ms until it is started again; `late=0,30,200` ms that datagrams are
 * answered late, `by=auto-redirect,auto-route`, `cases=open,closed`, `masquerade=no,yes`: each of them together is a row, in
 * namespaces of its own, and `together=6` of them run side by side. Needs root and nft. test/netns runs the same, shorter.
 * Ends with a table, and with 1 where anything arrived outside or a row failed.
 */
import { messageOf } from "#core/errors.ts";
import {
  leakedIn,
  proveLeaks,
  shownCase,
  shownLeaks,
  type LeakCase,
  type LeakStep,
} from "../test/proofs/leaks.ts";

const DEFAULTS = {
  changes: "200",
  reloads: "50",
  restarts: "20",
  kills: "20",
  gone: "60000",
  late: "0,30,200",
  by: "auto-redirect,auto-route",
  cases: "open,closed",
  masquerade: "no,yes",
  together: "6",
};
const wanted: Record<string, string> = { ...DEFAULTS };
for (const [name = "", value = ""] of process.argv.slice(2).map((argument) => argument.split("="))) {
  if (!Object.hasOwn(DEFAULTS, name))
    throw new Error(`unknown: ${name}; there are ${Object.keys(DEFAULTS).join(", ")}`);
  wanted[name] = value;
}
const number = (name: keyof typeof DEFAULTS): number => Number(wanted[name]);
const list = (name: keyof typeof DEFAULTS): readonly string[] => (wanted[name] ?? "").split(",");
const counts = {
  changes: number("changes"),
  reloads: number("reloads"),
  restarts: number("restarts"),
  kills: number("kills"),
  goneMs: number("gone"),
};

interface Row {
  readonly case: LeakCase;
  readonly steps: LeakStep[];
  /** Why it did not come to its end. */
  failure: string | null;
}

// The longest come first: with `closed` the run waits after each kill.
const rows: readonly Row[] = (["closed", "open"] as const)
  .filter((onExit) => list("cases").includes(onExit))
  .flatMap((onExit) =>
    (["auto-redirect", "auto-route"] as const)
      .filter((by) => list("by").includes(by))
      .flatMap((by) =>
        list("late").flatMap((late) =>
          list("masquerade").map((masquerade) => ({
            case: { by, onExit, lateMs: Number(late), masquerades: masquerade === "yes" },
            steps: [],
            failure: null,
          })),
        ),
      ),
  );

let next = 0;
async function lane(): Promise<void> {
  for (let row = rows[next++]; row !== undefined; row = rows[next++]) {
    const { case: of, steps } = row;
    try {
      await proveLeaks(of, counts, (step) => {
        steps.push(step);
        console.log(shownLeaks(of, step));
      });
    } catch (error) {
      row.failure = messageOf(error);
      console.log(`${shownCase(of)}: FAILED: ${row.failure}`);
    }
  }
}
await Promise.all(Array.from({ length: number("together") }, lane));

console.log("\nPackets outside:");
for (const { case: of, steps, failure } of rows) {
  const found = steps.map((step) => `${step.times} ${step.what} ${leakedIn(step)}`);
  console.log(
    `${shownCase(of)}: ${found.join(", ")}${failure === null ? "" : `; FAILED after it: ${failure.split("\n")[0]}`}`,
  );
  if (failure !== null || steps.some((step) => leakedIn(step) > 0)) process.exitCode = 1;
}
