/** Which congestion control: a value, so that another thread can be told. */
import { Bbr, type BbrProfile } from "./bbr.ts";
import { Brutal } from "./brutal.ts";
import type { Congestion } from "./congestion.ts";
import { Cubic } from "./cubic.ts";
import { NewReno } from "./new-reno.ts";

export type CongestionChoice =
  | { readonly kind: "bbr"; readonly profile: BbrProfile }
  | { readonly kind: "cubic" }
  | { readonly kind: "new_reno" }
  | { readonly kind: "brutal"; readonly bytesPerSecond: number };

export function makeCongestion(choice: CongestionChoice): Congestion {
  if (choice.kind === "bbr") return new Bbr(choice.profile);
  if (choice.kind === "brutal") return new Brutal(choice.bytesPerSecond);
  return choice.kind === "new_reno" ? new NewReno() : new Cubic();
}
