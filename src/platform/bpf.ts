/** bpf(2). On a system without it the error names the configuration key. */
import { readFileSync } from "node:fs";
import { ConfigError } from "#core/errors.ts";
import { Bpf } from "./linux/bpf.ts";
import { openLibc } from "./linux/libc.ts";

export type { Bpf } from "./linux/bpf.ts";

export const HAS_BPF: boolean =
  process.platform === "linux" && process.getBuiltinModule("node:ffi") !== undefined;

/** Throws `ConfigError`. */
export function openBpf(key: string): Bpf {
  if (process.platform !== "linux")
    throw new ConfigError(`${key}: only Linux can do this, this system is ${process.platform}`);
  const libc = openLibc();
  if (libc === null)
    throw new ConfigError(`${key}: needs a runtime with node:ffi, ${process.version} has none`);
  return new Bpf(process.getBuiltinModule("node:ffi"), libc);
}

/** CPUs that could ever be there: values of per-CPU maps are read for all of them. */
export function possibleCpus(): number {
  const ranges = readFileSync("/sys/devices/system/cpu/possible", "latin1").trim();
  return Number(ranges.split(/[-,]/).at(-1)) + 1;
}
