/** What keeps the process alive, and what ends it or begins it anew. */
import { execFileSync, spawn } from "node:child_process";
import { messageOf } from "#core/errors.ts";
import type { LogHub } from "#host/log.ts";
import type { ParsedFlags } from "./flags.ts";

/**
 * An uncaught fault of ours costs the connection in which it happened, not the others: it is logged with its stack, and
 * the program continues.
 */
export function survive(log: LogHub): Disposable {
  const onFault = (fault: unknown): void =>
    log.error(`a fault of weir, please report it: ${fault instanceof Error ? fault.stack : String(fault)}`);
  process.on("uncaughtException", onFault).on("unhandledRejection", onFault);
  return {
    [Symbol.dispose]: () => void process.off("uncaughtException", onFault).off("unhandledRejection", onFault),
  };
}

/** `work` is synchronous, and runs once even where the process ends in the middle of things. */
export function atExit(work: () => void): Disposable {
  process.once("exit", work);
  return { [Symbol.dispose]: () => void process.off("exit", work) };
}

/** The last resort: something that does not want to end, a hook or a device, must not hold up a shutdown. */
export function endWithin(deadlineMs: number, log: LogHub): void {
  setTimeout(() => {
    log.error(`not everything ended within ${deadlineMs} ms: ${process.getActiveResourcesInfo().join(", ")}`);
    log.flush();
    process.exit(0);
  }, deadlineMs).unref();
}

/** `-post-up` fails the start, `-post-down` only says so. */
export function runHook(flags: ParsedFlags, hook: "post-up" | "post-down"): void {
  const command = flags.text(hook);
  if (command === null) return;
  try {
    execFileSync(command, { shell: true, stdio: "inherit" });
  } catch (error) {
    if (hook === "post-up") throw new Error(`post-up: ${messageOf(error)}`, { cause: error });
    process.stderr.write(`post-down: ${messageOf(error)}\n`);
  }
}

/** The same program with the same arguments; on Unix in the same process. */
export function restartProcess(log: LogHub): void {
  log.flush();
  const [command, ...args]: [string, ...string[]] = [
    process.execPath,
    ...process.execArgv,
    ...process.argv.slice(1),
  ];
  if (process.platform !== "win32" && process.execve)
    process.execve(command, [command, ...args], process.env);
  spawn(command, args, { detached: true, stdio: "inherit" }).unref();
}
