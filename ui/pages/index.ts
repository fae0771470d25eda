/** THE list of pages. */
import type { ComponentType } from "preact";
import type { IconName } from "#ui/parts/icons.tsx";
import { AuditPage } from "./audit.tsx";
import { ConnectionsPage } from "./connections.tsx";
import { DnsPage } from "./dns.tsx";
import { ExplainPage } from "./explain.tsx";
import { GovernancePage } from "./governance.tsx";
import { GroupsPage } from "./groups.tsx";
import { LogsPage } from "./logs.tsx";
import { OverviewPage } from "./overview.tsx";
import { RulesPage } from "./rules.tsx";
import { SettingsPage } from "./settings.tsx";
import { UsersPage } from "./users.tsx";

export interface PageEntry {
  /** After the `#/` of the address; the drawing's name too. */
  readonly path: IconName;
  readonly title: string;
  readonly Page: ComponentType<{ readonly query: URLSearchParams }>;
}

export const PAGES: readonly PageEntry[] = [
  { path: "overview", title: "Overview", Page: OverviewPage },
  { path: "connections", title: "Connections", Page: ConnectionsPage },
  { path: "groups", title: "Groups", Page: GroupsPage },
  { path: "rules", title: "Rules", Page: RulesPage },
  { path: "usage", title: "Usage and limits", Page: GovernancePage },
  { path: "users", title: "Users", Page: UsersPage },
  { path: "audit", title: "Audit", Page: AuditPage },
  { path: "logs", title: "Logs", Page: LogsPage },
  { path: "dns", title: "DNS query", Page: DnsPage },
  { path: "explain", title: "Why there?", Page: ExplainPage },
  { path: "settings", title: "Settings", Page: SettingsPage },
];
