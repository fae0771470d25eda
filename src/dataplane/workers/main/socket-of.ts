import { Socket } from "node:net";
import type { RelayCalls } from "#platform/linux/relay-calls.ts";

/**
 * As a socket of the runtime, whose descriptor it is from here on. Null: there is none, or the runtime does not take it; then
 * it is closed, and its peer sees a reset.
 */
export function socketOf(fd: number, calls: RelayCalls): Socket | null {
  if (fd < 0) return null;
  try {
    return new Socket({ fd, allowHalfOpen: true });
  } catch {
    calls.reset(fd);
    return null;
  }
}
