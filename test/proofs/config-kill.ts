/** The process is killed at the n-th system call of a write of the configuration file: what is there is the old or the new file. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const CHILD = join(dirname(dirname(fileURLToPath(import.meta.url))), "support", "config-write.ts");
/** Those that change something. */
export const CHANGING = "openat,write,pwrite64,fchmod,fchown,fsync,link,linkat,rename,renameat2,unlink";
/** And all others that touch files. */
export const EVERY = `${CHANGING},close,statx,fstat,readlink,getdents64,read,pread64`;

const OLD = "mixed-port: 7890 # old\n";
const NEW = `mixed-port: 7891\n${"# new\n".repeat(2_000)}`;
const MOST = 400;

export interface KillFindings {
  /** Writes that were killed; the one after them went through. */
  readonly kills: number;
  readonly kept: { readonly old: number; readonly new: number };
  readonly faults: readonly string[];
}

export async function proveConfigKill(calls: string): Promise<KillFindings> {
  const kept = { old: 0, new: 0 };
  const faults: string[] = [];
  for (let n = 1; n <= MOST; n++) {
    const { said, text, mode, versions } = await killedAt(calls, n);
    if (text !== OLD && text !== NEW) faults.push(`call ${n}: another file of ${text.length} characters`);
    if (mode !== 0o640) faults.push(`call ${n}: mode ${mode.toString(8)}`);
    if (text === NEW && !versions.includes(OLD))
      faults.push(`call ${n}: the old one is not beside the new one`);
    if (said && text !== NEW) faults.push(`call ${n}: done, and lost`);
    if (said) return { kills: n - 1, kept, faults };
    kept[text === OLD ? "old" : "new"]++;
  }
  return { kills: MOST, kept, faults: [...faults, `it still has calls after ${MOST}`] };
}

async function killedAt(calls: string, n: number) {
  const home = mkdtempSync(join(tmpdir(), "weir-config-kill-"));
  const path = join(home, "config.yaml");
  try {
    writeFileSync(path, OLD, { mode: 0o640 });
    const env = { ...process.env, UV_THREADPOOL_SIZE: "1" }; // calls are counted in each thread by itself
    const child = spawn(process.execPath, [CHILD, path, NEW], { env, stdio: ["pipe", "pipe", "inherit"] });
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
    const closed = once(child, "close");
    while (!said.includes("ready")) await once(child.stdout, "data");
    const inject = ["-e", `trace=${calls}`, "-e", `inject=${calls}:signal=SIGKILL:when=${n}`];
    const tracer = spawn("strace", ["-f", "-p", `${child.pid}`, "-o", "/dev/null", ...inject], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    const traced = once(tracer, "close");
    let attached = "";
    tracer.stderr.setEncoding("utf8").on("data", (text: string) => (attached += text));
    while (!attached.includes("attached")) await once(tracer.stderr, "data");
    child.stdin.on("error", () => {}); // it may be gone before it has read
    child.stdin.write("go");
    await closed;
    await traced;
    const versions = readdirSync(home).filter((name) => /\.weir-\d+$/.test(name));
    return {
      said: said.includes("done"),
      text: readFileSync(path, "utf8"),
      mode: statSync(path).mode & 0o777,
      versions: versions.map((name) => readFileSync(join(home, name), "utf8")),
    };
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
