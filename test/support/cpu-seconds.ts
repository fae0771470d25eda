import { readFileSync } from "node:fs";

const TICKS_PER_SECOND = 100;

/** What a process that runs has used so far, all threads: proc_pid_stat(5), fields 14 and 15. */
export function cpuSecondsOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user = 0, system = 0] = text
    .slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13)
    .map(Number);
  return (user + system) / TICKS_PER_SECOND;
}
