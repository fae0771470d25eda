/** An installed program, started as the user that its package or image names. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { DebianSystem } from "./debian-system.ts";

export interface InstalledProgram extends AsyncDisposable {
  /** Ends it with SIGTERM and answers with its exit code. */
  stop(): Promise<number | null>;
}

/** Resolves when it serves; fails with what it said where it ends before. */
export async function installedProgram(system: DebianSystem): Promise<InstalledProgram> {
  const unit = await system.sh("cat /usr/lib/systemd/system/weir.service");
  const setting = (name: string) => {
    const value = new RegExp(`^${name}=(.+)$`, "m").exec(unit)?.[1];
    if (value === undefined) throw new Error(`the installed unit has no ${name}`);
    return value;
  };
  return startAs(system, setting("User"), setting("Group"), setting("ExecStart").split(" "));
}

/** The same for any command; `user` and `group` are names or numbers. */
export async function startAs(
  system: DebianSystem,
  user: string,
  group: string,
  command: readonly string[],
): Promise<InstalledProgram> {
  const identity = ["setpriv", "--reuid", user, "--regid", group, "--clear-groups"];
  const [first, ...args] = [...system.prefix, ...identity, ...command];
  const child = spawn(first as string, args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  let said = "";
  for await (const text of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    said += String(text);
    if (said.includes(" is running")) break;
  }
  if (!said.includes(" is running")) throw new Error(`the installed program does not start: ${said}`);
  child.stdout.resume();
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
    return child.exitCode;
  };
  return {
    stop,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) await stop();
    },
  };
}
