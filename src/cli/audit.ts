import { readFileSync } from "node:fs";
import type { AuditVerdict } from "#core/audit.ts";
import { hashOf, verifyLines } from "#journal/audit-chain.ts";
import { parseFlags, usageText, UsageError, type FlagTable, type ParsedFlags } from "./flags.ts";
import { openJournalLink } from "./journal-link.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";

const FLAGS: FlagTable = {
  ...SOURCE_FLAGS,
  head: {
    kind: "text",
    value: "SEQ:HASH",
    help: "verify: a head that was printed earlier; it must still be there",
  },
};

export const AUDIT_USAGE = usageText(
  `usage: weir audit verify [flags] [FILE]   whether an entry was changed, removed or moved; of an exported file, too
       weir audit export [flags]          every entry as a line of JSON, the oldest first

A weir that runs is asked through its Controller; otherwise its file is read.
`,
  FLAGS,
);

/** `weir audit VERB`. Verify answers with 1 where the chain is broken. */
export async function auditCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const [verb, ...others] = args;
  const flags = parseFlags(others, FLAGS, env);
  if (verb === "export" && flags.rest.length === 0) return exportAll(flags, env);
  if (verb !== "verify" || flags.rest.length > 1) throw new UsageError(AUDIT_USAGE);
  const { lines, verdict } = await logOf(flags, env);
  const faults = [...verdict.faults, ...earlierFaults(lines, flags.text("head"))];
  for (const fault of faults) process.stdout.write(`${fault}\n`);
  const { entries, first, head } = verdict;
  const range = entries === 0 ? "no entries" : `entries ${first} to ${head.seq}`;
  process.stdout.write(
    `${range}, ${faults.length === 0 ? "whole" : "NOT WHOLE"}, head ${head.seq}:${head.hash}\n`,
  );
  return faults.length === 0 ? 0 : 1;
}

async function exportAll(flags: ParsedFlags, env: NodeJS.ProcessEnv): Promise<number> {
  await using journal = await openJournalLink(flags, env);
  for (const line of await journal.auditLines()) process.stdout.write(`${line}\n`);
  return 0;
}

interface Log {
  readonly lines: readonly string[];
  readonly verdict: AuditVerdict;
}

async function logOf(flags: ParsedFlags, env: NodeJS.ProcessEnv): Promise<Log> {
  const [file] = flags.rest;
  if (file !== undefined) {
    const lines = readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "");
    return {
      lines,
      verdict: verifyLines(
        lines.map((line) => [null, line]),
        null,
      ),
    };
  }
  await using journal = await openJournalLink(flags, env);
  return { verdict: await journal.verifyAudit(), lines: await journal.auditLines() };
}

/** What was the end of the log once must be in it. */
function earlierFaults(lines: readonly string[], head: string | null): readonly string[] {
  if (head === null) return [];
  const [, seq, hash] = /^(\d+):([0-9a-f]{64})$/.exec(head) ?? [];
  if (seq === undefined || hash === undefined) throw new UsageError("audit verify: -head takes SEQ:HASH");
  if (lines.some((line) => hashOf(line) === hash)) return [];
  return [`entry ${seq}: what it was when that head was printed is not in the log`];
}
