import { SCOPES, type Scope } from "#core/access.ts";
import { parseDurationMs } from "#core/duration.ts";
import type { TokenView } from "#core/journal.ts";
import { parseFlags, usageText, UsageError, type FlagTable, type ParsedFlags } from "./flags.ts";
import { openJournalLink, type JournalLink } from "./journal-link.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";

const FLAGS: FlagTable = {
  ...SOURCE_FLAGS,
  scopes: { kind: "text", value: "LIST", help: `create: some of ${SCOPES.join(", ")}, joined by commas` },
  listener: { kind: "text", value: "NAME", help: "create: only its users, with the scope users alone" },
  expires: {
    kind: "text",
    value: "30d",
    help: "create: how long it opens anything; absent: until it is revoked",
  },
};

export const TOKEN_USAGE = usageText(
  `usage: weir token create -scopes LIST [flags] NAME   make a token and print it, once
       weir token list [flags]                       the tokens, without what opens anything
       weir token revoke [flags] ID                  a token opens nothing any more

A weir that runs is asked through its Controller; otherwise its file is changed.
`,
  FLAGS,
);

type Verb = (journal: JournalLink, flags: ParsedFlags) => Promise<void>;

const VERBS: Readonly<Record<string, Verb>> = { create, list, revoke };

/** `weir token VERB`. */
export async function tokenCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const [word = "", ...others] = args;
  const verb = Object.hasOwn(VERBS, word) ? VERBS[word] : undefined;
  if (verb === undefined) throw new UsageError(TOKEN_USAGE);
  const flags = parseFlags(others, FLAGS, env);
  await using journal = await openJournalLink(flags, env);
  await verb(journal, flags);
  return 0;
}

async function create(journal: JournalLink, flags: ParsedFlags): Promise<void> {
  const [name, ...more] = flags.rest;
  if (name === undefined || more.length > 0)
    throw new UsageError("token create: expected one NAME behind the flags");
  const scopes = scopesOf(flags.text("scopes") ?? "");
  const expires = flags.text("expires");
  const lifeMs = expires === null ? null : parseDurationMs(expires);
  if (expires !== null && lifeMs === null)
    throw new UsageError(`token create: -expires takes a duration such as 12h or 30d, not ${expires}`);
  const expiresAtMs = lifeMs === null ? null : Date.now() + lifeMs;
  const token = await journal.createToken({ name, scopes, listener: flags.text("listener"), expiresAtMs });
  process.stdout.write(`${token}\n`);
}

async function list(journal: JournalLink): Promise<void> {
  for (const view of await journal.tokens()) process.stdout.write(`${lineOf(view)}\n`);
}

async function revoke(journal: JournalLink, { rest }: ParsedFlags): Promise<void> {
  const [id, ...more] = rest;
  if (id === undefined || more.length > 0)
    throw new UsageError("token revoke: expected one ID, see weir token list");
  await journal.revokeToken(id);
  process.stdout.write(`${id} is revoked\n`);
}

function scopesOf(text: string): readonly Scope[] {
  const words = text.split(",").map((word) => word.trim());
  const scopes = SCOPES.filter((scope) => words.includes(scope));
  const unknown = words.find((word) => !SCOPES.some((scope) => scope === word));
  if (unknown === undefined) return scopes;
  throw new UsageError(
    `token create: -scopes takes some of ${SCOPES.join(", ")}, not ${JSON.stringify(unknown)}`,
  );
}

function lineOf({ id, name, scopes, listener, expiresAtMs, usedAtMs }: TokenView): string {
  const expiry = expiresAtMs === null ? "does not expire" : `${ends(expiresAtMs)} ${day(expiresAtMs)}`;
  const use = usedAtMs === null ? "not used" : `used ${day(usedAtMs)}`;
  return [
    id,
    name,
    scopes.join(","),
    ...(listener === null ? [] : [`listener ${listener}`]),
    expiry,
    use,
  ].join("  ");
}

function ends(atMs: number): string {
  return atMs <= Date.now() ? "has expired" : "expires";
}

function day(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 16);
}
