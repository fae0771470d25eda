/**
 * The n-th call of a kind fails in each of a store's threads while a change is made, then the process is killed, or goes
 * on with a medium that works again: what was acknowledged is in force, what was refused is not, and no start says that
 * state went back. The faults are injected at the system calls themselves.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type LogText, SILENT } from "#core/log.ts";
import { Store } from "#store/backup.ts";

const CHILD = join(dirname(dirname(fileURLToPath(import.meta.url))), "support", "store-change.ts");
export const CALLS = [
  "fsync,fdatasync",
  "pwrite64",
  "ftruncate",
  "openat",
  "rename",
  "fsync,fdatasync,ftruncate",
] as const;
export const CAN_INJECT =
  spawnSync("strace", ["-f", "-e", "inject=fsync:error=EIO", "true"], { stdio: "ignore" }).status === 0;

/** What becomes of the process behind the answer. */
export const ENDS = ["kill", "go on"] as const;
type End = (typeof ENDS)[number];

export interface FaultFindings {
  readonly rounds: number;
  readonly answers: Readonly<Record<string, number>>;
  readonly faults: readonly string[];
}

/** `most`: up to which n; `from`: also from the n-th on, all of them. */
export async function proveFaults(calls: readonly string[], most: number, end: End): Promise<FaultFindings> {
  const answers: Record<string, number> = {};
  const faults: string[] = [];
  let rounds = 0;
  for (const call of calls)
    for (let n = 1; n <= most; n++)
      for (const when of [`${n}`, `${n}+`])
        for (const before of [0, 3]) {
          const what = `${call} ${when} after ${before}, ${end}`;
          const { answer, found, later, back } = await round(call, when, before, end);
          rounds++;
          answers[answer] = (answers[answer] ?? 0) + 1;
          const isNew = found.startsWith("new");
          if (answer === "acknowledged" && !isNew) faults.push(`${what}: acknowledged, and lost`);
          if (answer === "refused" && isNew) faults.push(`${what}: refused, and in force`);
          if (end === "go on" && !later) faults.push(`${what}: a later change is lost`);
          if (back !== null) faults.push(`${what}: ${back}`);
          if (!["acknowledged", "refused", "undecided"].includes(answer)) faults.push(`${what}: ${answer}`);
        }
  return { rounds, answers, faults };
}

export function shownFaults({ rounds, answers, faults }: FaultFindings): string {
  return `${rounds} changes with failing calls: ${JSON.stringify(answers)}, ${faults.length} not as answered`;
}

interface Outcome {
  readonly answer: string;
  readonly found: string;
  /** The change that was made when the medium worked again is there. */
  readonly later: boolean;
  /** What the next start says of state that went back; null: nothing. */
  readonly back: string | null;
}

async function round(call: string, when: string, before: number, end: End): Promise<Outcome> {
  const home = mkdtempSync(join(tmpdir(), "weir-faults-"));
  const path = join(home, "s.db");
  try {
    const args = ["--disable-warning=ExperimentalWarning", CHILD, path, "new ", `${before}`, end];
    const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
    while (!said.includes("ready")) await once(child.stdout, "data");
    const inject = ["-e", `trace=${call}`, "-e", `inject=${call}:error=EIO:when=${when}`];
    const tracer = spawn("strace", ["-f", "-p", `${child.pid}`, "-o", "/dev/null", ...inject], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    const traced = once(tracer, "close");
    let attached = "";
    tracer.stderr.setEncoding("utf8").on("data", (text: string) => (attached += text));
    while (!attached.includes("attached")) await once(tracer.stderr, "data");
    child.stdin.write("go");
    const closed = once(child, "close");
    if (end === "go on") {
      while (said.split("\n").length < 3) await once(child.stdout, "data");
      tracer.kill("SIGINT"); // it detaches, and the calls work again
      await traced;
      child.stdin.write("go on");
    }
    await closed;
    await traced;
    let back: string | null = null;
    const error = (text: LogText) => {
      if (String(text).includes("GONE BACK")) back = String(text);
    };
    const log = { ...SILENT, error };
    using store = Store.open({ path, parts: ["users"], isMarked: true, nowMs: Date.now, log });
    const records = new Map(store.entries("users"));
    const found = String(records.get("k") ?? "");
    return { answer: said.split("\n").at(-2) ?? "", found, later: records.has("later"), back };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
