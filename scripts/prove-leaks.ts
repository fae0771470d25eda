/**
 * `npm run prove:leaks -- [name=count …]`: nothing that a TUN captures leaves past it. `changes=200` of the TUN, `reloads=50`,
 * `restarts=20`, `kills=20` with `gone=60000` ms until somebody starts it again; `late=0,30,200` ms that datagrams are
 * answered late, `cases=open,closed`. Needs root and nft. test/netns runs the same, shorter. Ends with 1 where anything
 * arrived outside.
 */
import { leakedIn, proveLeaks, shownLeaks } from "../test/proofs/leaks.ts";

const DEFAULTS = {
  changes: "200",
  reloads: "50",
  restarts: "20",
  kills: "20",
  gone: "60000",
  late: "0,30,200",
  cases: "open,closed",
  masquerade: "no,yes",
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
for (const onExit of ["open", "closed"] as const)
  for (const late of list("late"))
    for (const masquerade of list("masquerade")) {
      if (!list("cases").includes(onExit)) continue;
      const each = { onExit, lateMs: Number(late), masquerades: masquerade === "yes" };
      await proveLeaks(each, counts, (step) => {
        console.log(shownLeaks(each, step));
        if (leakedIn(step) > 0) process.exitCode = 1;
      });
    }
