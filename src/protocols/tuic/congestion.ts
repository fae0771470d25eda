import { Bbr, type BbrProfile } from "#transport/quic/congestion/bbr.ts";
import type { Congestion } from "#transport/quic/congestion/congestion.ts";
import { Cubic } from "#transport/quic/congestion/cubic.ts";
import { NewReno } from "#transport/quic/congestion/new-reno.ts";

/** Of either side. */
export function congestionOf(options: {
  readonly "congestion-controller": string;
  readonly "bbr-profile": BbrProfile | "";
}): Congestion {
  const kind = options["congestion-controller"];
  if (kind === "bbr") return new Bbr(options["bbr-profile"] || "standard");
  return kind === "new_reno" ? new NewReno() : new Cubic();
}
