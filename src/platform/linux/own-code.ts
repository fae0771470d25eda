/** What is resident of the runtime's own file and its libraries: code and tables, of which a start reads far more than what follows. */
import { readFileSync } from "node:fs";
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = { madvise: { arguments: ["u64", "u64", "i32"], return: "i32" } } as const;
/** madvise(2): of a file's pages that were never written to nothing is lost. What is read again comes from the system's cache. */
const MADV_DONTNEED = 4;

export interface MappedRange {
  readonly start: bigint;
  readonly bytes: bigint;
}

/** `00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/dbus-daemon`, then lines of values (proc_pid_maps(5), proc_pid_smaps(5)) */
const FILE_RANGE =
  /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p [0-9a-f]+ \S+ [1-9]\d* +\/.*\n(?:[A-Z].*\n)*?Anonymous: +0 kB$/gm;

/** The ranges of files that can neither be written to nor have been, in what /proc/PID/smaps says. */
export function unwrittenRanges(smaps: string): readonly MappedRange[] {
  return Array.from(smaps.matchAll(FILE_RANGE), ([, from, to]) => {
    const start = BigInt(`0x${from}`);
    return { start, bytes: BigInt(`0x${to}`) - start };
  });
}

/** Takes the files' pages out of this process; those that are needed come back one by one. Null where the system has no such call. */
export function openCodeRelease(): (() => void) | null {
  const ffi = openLinuxFfi();
  if (ffi === null) return null;
  try {
    const { functions } = ffi.dlopen(null, SIGNATURES);
    return () => {
      for (const { start, bytes } of unwrittenRanges(ownSmaps()))
        functions.madvise(start, bytes, MADV_DONTNEED);
    };
  } catch {
    return null;
  }
}

/** Nothing where the kernel shows none. As UTF-8 the runtime reads it in one buffer; else it takes one of 64 KiB for each page. */
function ownSmaps(): string {
  try {
    return readFileSync("/proc/self/smaps", "utf8");
  } catch {
    return "";
  }
}
