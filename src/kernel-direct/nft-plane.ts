/** The learnt DIRECT addresses in nftables: the sets that auto-redirect does not capture. */
import type { DirectSet, Prefix } from "#core/capture.ts";
import type { Ip } from "#core/session.ts";
import { ipFromBytes } from "#net/address/ip.ts";
import type { Plane } from "./plane.ts";

/**
 * `proxied`: prefixes that the file calls PROXY. A learnt address that equals one is PROXY (kernel-direct.md §4.2), and
 * the rules of the sets precede those on the classifier's marks: so it never gets into them.
 */
export function nftPlane(set: DirectSet, proxied: readonly Prefix[]): Plane {
  const single = proxied.filter(({ bytes, bits }) => bits === bytes.length * 8);
  const kept: ReadonlySet<Ip> = new Set(single.map(({ bytes }) => ipFromBytes(bytes)));
  const learnt = (ips: readonly Ip[]): readonly Ip[] =>
    kept.size === 0 ? ips : ips.filter((ip) => !kept.has(ip));
  return {
    async apply({ direct }) {
      const [remove, add] = [learnt(direct.remove), learnt(direct.add)];
      if (add.length + remove.length > 0) await set.change(remove, add);
    },
    replace: (direct) => set.replace(learnt(direct)),
  };
}
