/** The program that a package has installed, started with the command and as the user of its unit. */
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
  const user = ["setpriv", "--reuid", setting("User"), "--regid", setting("Group"), "--clear-groups"];
  const [first, ...args] = [...system.prefix, ...user, ...setting("ExecStart").split(" ")];
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
