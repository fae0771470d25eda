/** Between two captures nothing new leaves: what would pass the program by waits for its own next try. */
import type { CaptureOptions, Prefix } from "#core/capture.ts";
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { openNetlink } from "#platform/netlink.ts";
import type { Nftables } from "#platform/nftables.ts";
import { localNetworks } from "./local-networks.ts";
import { braced, prefixElements } from "./nft/elements.ts";

const KEY = "auto-redirect";
const TABLE = "inet svc_hold";

/**
 * New connections and flows, forwarded or of this machine, are dropped until it is disposed; networks around, marked
 * sockets and what goes on already are not touched. Never throws: without nftables nothing is held.
 */
export async function holdTraffic(
  { outputMark }: Pick<CaptureOptions, "outputMark">,
  { nftables, log }: { readonly nftables: Nftables; readonly log: Log },
): Promise<AsyncDisposable> {
  try {
    await using undo = new AsyncDisposableStack();
    using socket = openNetlink(KEY);
    const session = undo.use(await nftables.open(KEY));
    await session.run(holdText(outputMark, localNetworks(socket)));
    // It goes with the session that owns it; a moment earlier where that takes its time.
    undo.defer(() => session.run(`delete table ${TABLE}`).then(ignored, ignored));
    return undo.move();
  } catch (error) {
    log.warning(`${KEY}: traffic is not held back while the capture changes: ${messageOf(error)}`);
    return new AsyncDisposableStack();
  }
}

/**
 * Pure. The empty chain of NAT keeps the kernel translating what was redirected before: without any such chain the rest of
 * a conversation would leave as it came, for the server that the proxy talks to.
 */
export function holdText(outputMark: number, local: readonly Prefix[]): string {
  const around = ([4, 6] as const).flatMap((family) => {
    const elements = prefixElements(local, family);
    return elements.length === 0 ? [] : [`ip${family === 6 ? "6" : ""} daddr ${braced(elements)} accept`];
  });
  const passing = ["ct state != new accept", ...around];
  const link = [
    "ip daddr { 169.254.0.0/16, 224.0.0.0/4, 255.255.255.255 } accept",
    "ip6 daddr { fe80::/10, ff00::/8 } accept",
  ];
  const chain = (hook: string, rules: readonly string[]): string =>
    `chain ${hook} { type filter hook ${hook} priority -160; policy accept;\n${rules.join("\n")}\ncounter drop\n}\n`;
  const own = [`meta mark ${outputMark} accept`, 'oifname "lo" accept', ...link];
  const parts = [
    "flags owner",
    "chain prerouting { type nat hook prerouting priority -98; policy accept; }",
    chain("forward", passing),
    chain("output", [...own, ...passing]),
  ];
  return `add table ${TABLE}\ndelete table ${TABLE}\ntable ${TABLE} {\n${parts.join("\n")}\n}\n`;
}

function ignored(): void {}
