/** Who may do what, and who did: `/api/svc/tokens` and `/api/svc/audit`, behind the secret of the `svc` block. */
import { svcGuard } from "#api/admin/guard.ts";
import { isInClear, type Transport } from "#api/app-env.ts";
import type { Route } from "#api/route.ts";
import type { Subscribers } from "#api/subscriber.ts";
import type { JournalControl } from "#core/journal.ts";
import { auditRoutes } from "./audit.ts";
import { eventRoutes } from "./events.ts";
import { webhookRoutes } from "./webhooks.ts";
import { tokenRoutes } from "./tokens.ts";

/** Events go by the Controller's secret, like other streams; the rest is not on a plain TCP port that other machines reach: there the secret would travel in the clear. */
export function journalRoutes(
  journal: JournalControl,
  transport: Transport,
  subscribers: Subscribers,
): readonly Route[] {
  return [...eventRoutes(journal, subscribers), ...ownRoutes(journal, transport)];
}

function ownRoutes(journal: JournalControl, transport: Transport): readonly Route[] {
  if (isInClear(transport)) return [];
  const guard = svcGuard(() => journal.secret, journal, transport);
  const own = [...tokenRoutes(journal), ...auditRoutes(journal), ...webhookRoutes(journal)];
  return own.map((each) => ({ ...each, guard }));
}
