import { access, constants } from "node:fs/promises";
import { resolve } from "node:path";
import { errnoOf, messageOf } from "#core/errors.ts";
import { parseDurationMs } from "#core/duration.ts";
import { askForUpgrade, requestPath, type UpgradeAnswer } from "#upgrade/requests.ts";
import { DRAIN_MS } from "#upgrade/upgrades.ts";
import { parseFlags, usageText, UsageError, type FlagTable } from "./flags.ts";
import { SOURCE_FLAGS } from "./run-flags.ts";
import { homeOf } from "./source.ts";

const FLAGS: FlagTable = {
  d: SOURCE_FLAGS.d,
  to: { kind: "text", value: "PATH", help: "the executable of the new version; absent: the same command" },
  drain: {
    kind: "text",
    value: "TIME",
    help: "what open connections get in the old process, such as 5m or 2h (10m)",
  },
  json: { kind: "switch", help: "the answer as one line of JSON" },
};

export const UPGRADE_USAGE = usageText(
  `usage: weir upgrade [flags]     another process takes the place of the weir that runs in this home directory, without
                                a refused connection; exit code 0: it serves, 1: nothing has changed
`,
  FLAGS,
);

/** `weir upgrade`. */
export async function upgradeCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const flags = parseFlags(args, FLAGS, env);
  if (flags.rest.length > 0) throw new UsageError(UPGRADE_USAGE);
  const drain = flags.text("drain");
  const drainMs = drain === null ? DRAIN_MS : parseDurationMs(drain);
  if (drainMs === null) throw new UsageError(`-drain: expected a time such as 5m, 12h or 1d, got ${drain}`);
  const to = flags.text("to");
  const answer = await answerFor(homeOf(flags, env), to === null ? null : resolve(to), drainMs);
  if (flags.on("json")) process.stdout.write(`${JSON.stringify(answer)}\n`);
  else if (answer.done) process.stdout.write(`${textOf(answer)}\n`);
  else process.stderr.write(`nothing has changed: ${answer.reason}\n`);
  return answer.done ? 0 : 1;
}

async function answerFor(home: string, to: string | null, drainMs: number): Promise<UpgradeAnswer> {
  try {
    if (to !== null) await access(to, constants.X_OK);
    return await askForUpgrade(home, { to, drainMs });
  } catch (error) {
    const isAbsent = ["ENOENT", "ECONNREFUSED"].includes(errnoOf(error) ?? "");
    const reason =
      isAbsent && to === null
        ? `no weir that could be asked runs in ${home} (${requestPath(home)})`
        : messageOf(error);
    return { done: false, reason };
  }
}

function textOf({ pid, connections, drainMs }: Extract<UpgradeAnswer, { done: true }>): string {
  return `process ${pid} serves; ${connections} connections of the old one have ${drainMs / 60_000} minutes to end`;
}
