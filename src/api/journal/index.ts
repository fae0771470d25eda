/** Who may do what, and who did: `/api/svc/tokens` and `/api/svc/audit`, behind the secret of the `svc` block. */
import { svcGuard } from "#api/admin/guard.ts";
import type { Transport } from "#api/app-env.ts";
import type { Route } from "#api/route.ts";
import type { JournalControl } from "#core/journal.ts";
import { auditRoutes } from "./audit.ts";
import { tokenRoutes } from "./tokens.ts";

/** None on a plain TCP port that other machines reach: there the secret would travel in the clear. */
export function journalRoutes(journal: JournalControl, transport: Transport): readonly Route[] {
  if (transport.kind === "http" && !transport.isLocal) return [];
  const guard = svcGuard(() => journal.secret, journal, transport);
  return [...tokenRoutes(journal), ...auditRoutes(journal)].map((each) => ({ ...each, guard }));
}
