import { cleanUp } from "#capture/index.ts";
import { messageOf } from "#core/errors.ts";
import { SILENT } from "#core/log.ts";
import { cleanUpClassifier } from "#kernel-direct/clean-up.ts";
import { parseFlags, usageText } from "./flags.ts";
import { setUp } from "./load.ts";
import { RUN_FLAGS } from "./run-flags.ts";

export const CLEAN_UP_USAGE = usageText("usage: weir cleanup [flags of weir]", RUN_FLAGS);

/** `weir cleanup [flags of weir]`: the ip rules, routes, nftables and filters of a weir that was killed. */
export async function cleanUpCommand(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { result } = setUp(parseFlags(args, RUN_FLAGS, env), env, SILENT).loader.current();
  if (result.errors !== undefined) throw new Error("cleanup: the configuration has errors, see weir -t");
  const { tun } = result.config;
  try {
    const place = {
      ruleIndex: tun.iproute2RuleIndex,
      fallbackRuleIndex: tun.autoRedirectIproute2FallbackRuleIndex,
      tableIndex: tun.iproute2TableIndex,
    };
    cleanUpClassifier();
    await cleanUp([place], SILENT);
  } catch (error) {
    throw new Error(`cleanup: ${messageOf(error)}`, { cause: error });
  }
  return 0;
}
