import { Readable } from "node:stream";
import * as z from "zod";
import { amount, anyJson, unixMs } from "#api/answer-shapes.ts";
import { route, type Route } from "#api/route.ts";
import { queryInt, queryOf } from "#api/shapes.ts";
import type { AuditEntry } from "#core/audit.ts";
import type { JournalControl } from "#core/journal.ts";

const MOST_ENTRIES = 500;
const USUAL_ENTRIES = 100;

const head = z.object({ seq: amount(), hash: z.string() });

const entryShape = z
  .object({
    seq: z.int().positive(),
    at: unixMs(),
    actor: z.object({
      kind: z.enum(["owner", "token", "program"]),
      name: z.string(),
      id: z.string().optional(),
    }),
    from: z.string(),
    request: z.string(),
    action: z.string(),
    target: z.string(),
    listener: z.string().optional(),
    user: z.object({ id: z.string(), name: z.string() }).optional(),
    before: anyJson().optional(),
    after: anyJson().optional(),
    previous: z.string(),
    hash: z.string(),
  })
  .meta({ id: "AuditEntry" });

const moment = (description: string) => queryInt(0, Number.MAX_SAFE_INTEGER).optional().describe(description);

const query = queryOf({
  before: moment("A number: entries before it"),
  limit: queryInt(1, MOST_ENTRIES).optional(),
  actor: z.string().optional().describe("Name or id"),
  action: z.string().optional().describe("What it begins with"),
  about: z.string().optional().describe("A listener, a user's id or name, or a target"),
  since: moment("Unix ms"),
  until: moment("Unix ms"),
});

export function auditRoutes(journal: JournalControl): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "admin",
      path: "/api/svc/audit",
      summary: "Who changed what, the newest first",
      query,
      answer: {
        status: 200,
        description: "`next` is for `before` of the next page; `head` is the end of the chain",
        schema: z.object({ entries: z.array(entryShape), next: amount().optional(), head }),
      },
      handle(call) {
        const { before = null, limit = USUAL_ENTRIES, since = null, until = null } = call.query;
        const { actor = null, action = null, about = null } = call.query;
        const page = journal.audit({ before, limit, actor, action, about, sinceMs: since, untilMs: until });
        return {
          entries: page.entries.map(entryJson),
          ...(page.next === null ? {} : { next: page.next }),
          head: page.head,
        };
      },
    }),
    route({
      method: "GET",
      scope: "admin",
      path: "/api/svc/audit/export.ndjson",
      summary: "The whole audit log, the oldest entry first",
      answer: {
        status: 200,
        type: "application/x-ndjson",
        description: "A line an entry, as it is hashed: `weir audit verify FILE` checks the chain",
      },
      async handle({ reply }) {
        const lines = journal.auditLines();
        await reply
          .header("content-disposition", 'attachment; filename="weir-audit.ndjson"')
          .type("application/x-ndjson")
          .send(Readable.from(lineFeeds(lines)));
      },
    }),
    route({
      method: "GET",
      scope: "admin",
      path: "/api/svc/audit/verify",
      summary: "Whether the chain of the audit log is whole",
      answer: {
        status: 200,
        description: "A sentence for each break in `faults`",
        schema: z.object({ head, first: amount(), entries: amount(), faults: z.array(z.string()) }),
      },
      handle: () => journal.verifyAudit(),
    }),
  ];
}

function* lineFeeds(lines: Iterable<string>): Generator<string> {
  for (const line of lines) yield `${line}\n`;
}

function entryJson({ atMs, ...entry }: AuditEntry) {
  return { ...entry, at: atMs };
}
