/** Governance and its portal, prepared and switched as one. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Governance, Prepared } from "./governance.ts";
import type { PortalSlot } from "./portal-slot.ts";
import type { GovernanceSettings } from "./settings.ts";

export interface TrafficControl {
  readonly governance: Governance;
  readonly portals: PortalSlot;
  readonly log: Log;
}

/** Rejects with nothing changed. `tolerant`: a portal or store that cannot be opened is logged, the limits hold. */
export async function prepareTrafficControl(
  { governance, portals, log }: TrafficControl,
  settings: GovernanceSettings | null,
  options: { readonly tolerant: boolean },
): Promise<Prepared> {
  const portal = await portals.prepare(settings).catch((error: unknown) => {
    const text = `traffic-control.portal.listen: ${messageOf(error)}`;
    if (!options.tolerant) throw new Error(text, { cause: error });
    log.error(text);
    return portals.prepare(null);
  });
  try {
    const policies = await governance.prepare(settings, options);
    return {
      abandon() {
        policies.abandon();
        portal.abandon();
      },
      activate() {
        policies.activate();
        portal.activate();
      },
    };
  } catch (error) {
    portal.abandon();
    throw error;
  }
}
