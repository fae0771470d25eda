/** Removes what a killed program left in the kernel, without a new start of it. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { openNetlink } from "#platform/netlink.ts";
import { NftError, Nftables } from "#platform/nftables.ts";
import { FirewallOpenings } from "./firewall.ts";
import { Guard, removeGuard } from "./guard.ts";
import { NEXT_TABLE, TABLE } from "./nft/names.ts";
import { clearRouting, type RoutingContext } from "./routing.ts";
import { clearStale } from "./stale.ts";

const KEY = "cleanup";

/** `keepsClosed`: what keeps captured traffic in stays. Not while a capture is in force: it would lose its rules. Throws `ConfigError` or `SystemError`. */
export async function cleanUp(
  places: readonly RoutingContext[],
  { keepsClosed }: { readonly keepsClosed: boolean },
  log: Log,
): Promise<void> {
  using socket = openNetlink(KEY);
  if (!keepsClosed) removeGuard(log);
  const leaves = keepsClosed && Guard.isThere(); // what captures by routes is what keeps in
  if (!leaves) for (const place of places) clearRouting(socket, place);
  clearStale(log, { keepsFakes: leaves }); // where the configuration is another one by now
  const session = await new Nftables().open(KEY).catch((error: unknown) => {
    log.debug(`nftables: ${messageOf(error)}`); // without the library there was no table either
    return null;
  });
  if (session === null) return;
  await using opened = session;
  await new FirewallOpenings(() => opened, '""', log).remove();
  for (const table of [TABLE, NEXT_TABLE])
    try {
      await opened.run(`delete table ${table}`);
    } catch (error) {
      if (!(error instanceof NftError)) throw error; // there is none: the kernel took it away with its owner
    }
}
