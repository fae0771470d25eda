/** The learnt DIRECT addresses in nftables: the sets that auto-redirect does not capture. */
import type { DirectSet } from "#core/capture.ts";
import type { Plane } from "./plane.ts";

export function nftPlane(set: DirectSet): Plane {
  return {
    async apply({ direct: { add, remove } }) {
      if (add.length + remove.length > 0) await set.change(remove, add);
    },
    replace: (direct) => set.replace(direct),
  };
}
