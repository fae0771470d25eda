import type { BbrProfile } from "#transport/quic/congestion/bbr.ts";
import type { CongestionChoice } from "#transport/quic/congestion/choice.ts";

/** Of either side. */
export function congestionOf(options: {
  readonly "congestion-controller": string;
  readonly "bbr-profile": BbrProfile | "";
}): CongestionChoice {
  const kind = options["congestion-controller"];
  if (kind === "bbr") return { kind, profile: options["bbr-profile"] || "standard" };
  return kind === "new_reno" ? { kind } : { kind: "cubic" };
}
