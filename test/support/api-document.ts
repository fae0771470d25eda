/** The API's own description as tests and tools read it, with every route that the program can serve. */
import { adminRoutes } from "#api/admin/index.ts";
import type { AppOptions } from "#api/app-env.ts";
import { journalRoutes } from "#api/journal/index.ts";
import { subscriptionRoutes } from "#api/subscription.ts";
import { SILENT } from "#core/log.ts";
import type { JournalControl } from "#core/journal.ts";
import type { UsersControl } from "#core/users.ts";
import { MemoryJournal } from "./memory-journal.ts";
import { ADMIN_SECRET } from "./memory-users.ts";
import type { MemoryControl } from "./memory-control.ts";

export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly description?: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
}

type Content = Readonly<Record<string, { readonly schema?: JsonSchema }>>;

export interface Operation {
  readonly summary: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly description: string; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
}

export interface ApiDocument {
  readonly info: { readonly title: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

/** Options that leave no route out. */
export function everyRoute(
  control: MemoryControl,
  users: UsersControl,
  journal: JournalControl = new MemoryJournal(),
): Pick<AppOptions, "access" | "svcSecret" | "dohPath" | "mounts" | "uiFolder"> {
  return {
    access: journal,
    svcSecret: () => ADMIN_SECRET,
    uiFolder: "/nonexistent",
    dohPath: "/dns-query",
    mounts: (transport, subscribers) => [
      ...adminRoutes(users, control, transport, journal),
      ...journalRoutes(journal, transport, subscribers),
      ...subscriptionRoutes(users, SILENT),
    ],
  };
}
