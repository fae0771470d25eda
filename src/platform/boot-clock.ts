/** The clock that goes on while the machine sleeps, and the mark that tells one run of the machine from the next. */
import { readFileSync } from "node:fs";
import { uptime } from "node:os";

const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/**
 * Null where the system has none: elsewhere than on Linux the runtime's monotonic clock counts sleep, and the time of the
 * start moves with the system's clock. A look costs a read of `/proc/uptime`.
 */
export function openBootClock(): { readonly id: string; nowMs(): number } | null {
  if (process.platform !== "linux" && process.platform !== "android") return null;
  try {
    return { id: readFileSync(BOOT_ID, "latin1").trim(), nowMs: () => uptime() * 1000 };
  } catch {
    return null; // no /proc: pauses are told by the system's clock alone
  }
}
