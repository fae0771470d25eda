/** What the C library's allocator keeps free for itself: a storm of handshakes leaves hundreds of MiB of it (malloc_trim(3)). */
import { openLinuxFfi } from "#platform/ffi.ts";

const SIGNATURES = { malloc_trim: { arguments: ["u64"], return: "i32" } } as const;

/** Gives it back to the system, that of all threads; it takes the longer the more there is (some 10 ms for 500 MiB). Null where the library has no such call. */
export function openTrim(): (() => void) | null {
  const ffi = openLinuxFfi();
  if (ffi === null) return null;
  try {
    const { functions } = ffi.dlopen(null, SIGNATURES);
    return () => void functions.malloc_trim(0n);
  } catch {
    return null; // musl: it gives back by itself
  }
}
