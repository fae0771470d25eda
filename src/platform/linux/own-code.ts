/** What is resident of the program's own file: code and tables of the runtime, of which a start reads far more than what follows. */
import { readFileSync } from "node:fs";

const SIGNATURES = { madvise: { arguments: ["u64", "u64", "i32"], return: "i32" } } as const;
/** madvise(2): of a file's pages that were never written to nothing is lost. What is read again comes from the system's cache. */
const MADV_DONTNEED = 4;

export interface MappedRange {
  readonly start: bigint;
  readonly bytes: bigint;
}

/** `00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/dbus-daemon` (proc_pid_maps(5)) */
const HEADER = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p [0-9a-f]+ \S+ [1-9]\d* +(.*)$/;

/** The ranges of `file` that can neither be written to nor have been, in what /proc/PID/smaps says. */
export function unwrittenRanges(smaps: string, file: string): readonly MappedRange[] {
  const ranges: MappedRange[] = [];
  let present: MappedRange | null = null;
  for (const line of smaps.split("\n")) {
    const [, start, end, path] = HEADER.exec(line) ?? [];
    if (start !== undefined && path === file)
      present = { start: BigInt(`0x${start}`), bytes: BigInt(`0x${end}`) - BigInt(`0x${start}`) };
    else if (/^[0-9a-f]+-/.test(line)) present = null;
    else if (present !== null && line.startsWith("Anonymous:") && /\s0 kB$/.test(line)) ranges.push(present);
  }
  return ranges;
}

/** Takes the file's pages out of this process; those that are needed come back one by one. Null where the system has no such call. */
export function openCodeRelease(): (() => void) | null {
  const ffi = process.platform === "linux" ? process.getBuiltinModule("node:ffi") : undefined;
  if (ffi === undefined) return null;
  try {
    const { functions } = ffi.dlopen(null, SIGNATURES);
    return () => {
      for (const { start, bytes } of unwrittenRanges(ownSmaps(), process.execPath))
        functions.madvise(start, bytes, MADV_DONTNEED);
    };
  } catch {
    return null;
  }
}

/** Nothing where the kernel shows none. */
function ownSmaps(): string {
  try {
    return readFileSync("/proc/self/smaps", "latin1");
  } catch {
    return "";
  }
}
