/** bpf(2). On a system without it the error names the configuration key. */
import { readFileSync } from "node:fs";
import { Bpf } from "./linux/bpf.ts";
import { libcFor } from "./linux/libc.ts";
import { openLinuxFfi, ffiFor } from "./ffi.ts";

export type { Bpf } from "./linux/bpf.ts";

export const HAS_BPF: boolean = openLinuxFfi() !== null;

/** Throws `ConfigError`. */
export function openBpf(key: string): Bpf {
  return new Bpf(ffiFor(key), libcFor(key));
}

/** CPUs that could ever be there: values of per-CPU maps are read for all of them. */
export function possibleCpus(): number {
  const ranges = readFileSync("/sys/devices/system/cpu/possible", "latin1").trim();
  return Number(ranges.split(/[-,]/).at(-1)) + 1;
}
