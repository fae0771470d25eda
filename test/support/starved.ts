import { readFileSync } from "node:fs";

/** How long the main thread of a process was ready to run and had no CPU, since it began (Linux). */
export function starvedMs(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
}
