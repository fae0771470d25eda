/** THE list of pages. */
import type { ComponentType } from "preact";
import type { IconName } from "#ui/parts/icons.tsx";
import type { PlainKey } from "#ui/words/words.ts";
import { AuditPage } from "./audit.tsx";
import { ConnectionsPage } from "./connections.tsx";
import { DnsPage } from "./dns.tsx";
import { EditorPage } from "./editor.tsx";
import { ExplainPage } from "./explain.tsx";
import { GovernancePage } from "./governance.tsx";
import { GroupsPage } from "./groups.tsx";
import { InboundsPage } from "./inbounds.tsx";
import { LogsPage } from "./logs.tsx";
import { NodesPage } from "./nodes.tsx";
import { OverviewPage } from "./overview.tsx";
import { RulesPage } from "./rules.tsx";
import { SettingsPage } from "./settings.tsx";
import { TokensPage } from "./tokens.tsx";
import { UsersPage } from "./users.tsx";

export interface PageEntry {
  /** After the `#/` of the address; the drawing's name too. */
  readonly path: IconName;
  readonly title: PlainKey;
  readonly Page: ComponentType<{ readonly query: URLSearchParams }>;
}

export const PAGES: readonly PageEntry[] = [
  { path: "overview", title: "page.overview", Page: OverviewPage },
  { path: "connections", title: "page.connections", Page: ConnectionsPage },
  { path: "groups", title: "page.groups", Page: GroupsPage },
  { path: "rules", title: "page.rules", Page: RulesPage },
  { path: "usage", title: "page.usage", Page: GovernancePage },
  { path: "inbounds", title: "page.inbounds", Page: InboundsPage },
  { path: "users", title: "page.users", Page: UsersPage },
  { path: "nodes", title: "page.nodes", Page: NodesPage },
  { path: "audit", title: "page.audit", Page: AuditPage },
  { path: "tokens", title: "page.tokens", Page: TokensPage },
  { path: "logs", title: "page.logs", Page: LogsPage },
  { path: "dns", title: "page.dns", Page: DnsPage },
  { path: "explain", title: "page.explain", Page: ExplainPage },
  { path: "editor", title: "page.editor", Page: EditorPage },
  { path: "settings", title: "page.settings", Page: SettingsPage },
];
