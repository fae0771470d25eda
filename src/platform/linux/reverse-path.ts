/** Answers come out of a TUN with the addresses of the whole world: a strict check of their way back drops them. */
import { writeFileSync } from "node:fs";

/** The larger of this and the setting for `all` counts, and 2 (loose) is the largest (ip-sysctl, rp_filter). */
const LOOSE = "2";

/** Throws where the setting cannot be written. */
export function loosenReversePath(device: string): void {
  writeFileSync(`/proc/sys/net/ipv4/conf/${device}/rp_filter`, LOOSE);
}
