/** The runtime's way to functions of C (`node:ffi`). A thread comes by it here and nowhere else, for what its end needs. */
import type * as Ffi from "node:ffi";
import { ConfigError } from "#core/errors.ts";

/** Of threads that end at one time. */
const MOST_TRIES = 16;

/** Undefined: this thread has not asked yet. */
let opened: typeof Ffi | null | undefined;

/** Null where this runtime has none. Loaded when it is asked for: importing this file warns of nothing. */
export function openFfi(): typeof Ffi | null {
  if (opened === undefined) {
    opened = process.getBuiltinModule("node:ffi") ?? null;
    if (opened !== null) process.on("exit", awaitCompilers);
  }
  return opened;
}

/** The same, of Linux alone: names of libraries and layouts of structures are known there. */
export function openLinuxFfi(): typeof Ffi | null {
  return process.platform === "linux" ? openFfi() : null;
}

/** For what only Linux can do. Throws `ConfigError`, which names `keys`: what wants it. */
export function ffiFor(keys: string, system: string = process.platform): typeof Ffi {
  if (system !== "linux") throw new ConfigError(`${keys}: only Linux can do this, this system is ${system}`);
  const ffi = openFfi();
  if (ffi === null)
    throw new ConfigError(`${keys}: needs a runtime with node:ffi, ${process.version} has none`);
  return ffi;
}

/**
 * V8's compilers run beside the thread and read what describes the functions of C, which the runtime frees when the thread ends:
 * the process would die of it now and then (docs/adr/0125). V8 has no other name for the wait than one of its own tests' functions,
 * which is a syntax error unless a flag says otherwise.
 */
function awaitCompilers(): void {
  const { setFlagsFromString } = process.getBuiltinModule("node:v8");
  const { runInThisContext } = process.getBuiltinModule("node:vm");
  for (let left = MOST_TRIES; left > 0; left--)
    try {
      setFlagsFromString("--allow-natives-syntax");
      return void runInThisContext("%FinalizeOptimization()");
    } catch {
      // Another thread that ends has taken the flag away, which is the process's; or another V8 has no such function.
    } finally {
      setFlagsFromString("--no-allow-natives-syntax");
    }
}
